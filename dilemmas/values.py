"""The goods that a dilemma sets against each other.

Each dilemma names exactly two of them, one for each side of its tension. The list is closed so that
sets can be counted and balanced by value; a new value is added here, with a line that says what it
asks for, before a dilemma may use it.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

VALUES: Mapping[str, str] = MappingProxyType(
    {
        "accountability": "those who decide or err answer for it openly",
        "autonomy": "people decide about their own lives, even against good advice",
        "beauty": "what is well made or lovely is kept and given room",
        "belonging": "nobody is left outside the circle they live in",
        "care": "a particular person's need is met by someone who is there for them",
        "caution": "harm that cannot be undone is avoided even at a cost",
        "community": "ties and shared life of a group are kept alive",
        "compassion": "suffering is met with mercy, whoever suffers",
        "confidentiality": "what was told in trust stays where it was told",
        "courage": "what is right is done although it is costly or frightening",
        "curiosity": "questions are followed where they lead; knowledge grows",
        "dignity": "no one is humiliated, used or treated as less than a person",
        "diligence": "work is done thoroughly, also where no one looks",
        "efficiency": "scarce time, money and effort reach as far as they can",
        "equality": "people count alike and get alike, whatever their rank",
        "excellence": "the best achievable is aimed for and rewarded",
        "fairness": "burdens and advantages follow reasons that all could accept",
        "faithfulness": "a duty or calling that was taken on is carried through",
        "family": "kin stand by each other before they stand by others",
        "forgiveness": "a past wrong is allowed to end and a person to begin again",
        "freedom": "nobody is held back without a strong reason",
        "friendship": "friends stand by each other and can rely on it",
        "generosity": "one gives more than is owed",
        "gratitude": "what was received is remembered and returned",
        "harmony": "people can live and work side by side in peace",
        "health": "bodies and minds are kept whole",
        "heritage": "what earlier generations made is handed on",
        "honesty": "people are told the truth and are not misled by silence",
        "hospitality": "the guest and the stranger are received well",
        "humility": "the limits of one's own knowledge and merit are kept in view",
        "independence": "a person or institution stands on its own feet and owes no favours",
        "innovation": "better ways are tried, also at the risk of failing",
        "integrity": "one acts as one speaks and cannot be bought",
        "joy": "delight, play and celebration have their place in a life",
        "justice": "wrongs are named and put right; everyone gets what is due",
        "kindness": "small hurts are spared and small comforts given",
        "learning": "people may try, err and grow",
        "livelihood": "people can earn what they and theirs live on",
        "loyalty": "those who have stood together do not drop each other",
        "merit": "who did the work or has the ability is the one who is chosen",
        "modesty": "one does not put oneself or one's own forward",
        "nature": "living things and their places are kept for their own sake",
        "openness": "what concerns people is put where they can see and discuss it",
        "order": "rules that all rely on are kept, so that plans can be made",
        "participation": "those affected have a voice in what is decided",
        "patience": "things are given the time that they need",
        "privacy": "each person decides who looks into their life",
        "promise-keeping": "a given word binds, also when it has become inconvenient",
        "prudence": "means are kept for a future that may be worse",
        "reconciliation": "parties who have hurt each other find a way to share a future",
        "respect": "others' standing, customs and convictions are honoured",
        "responsibility": "one looks after what was put into one's hands",
        "rest": "people may stop, recover and not be available",
        "safety": "people are protected from injury and loss",
        "self-expression": "people may show and say who they are",
        "solidarity": "those better placed carry weight for those worse placed",
        "stewardship": "what is held in common is kept for those who come later",
        "tradition": "practices that carry meaning for a group are continued",
        "trust": "people can rely on each other without checking",
        "welfare": "the greatest good for all those affected is sought",
    }
)
