"""Capitalised words that are not a person's: a closed list, English."""

_WORDS = """
    Monday Tuesday Wednesday Thursday Friday Saturday Sunday January February March April May June
    July August September October November December Christmas Easter Ramadan
    Mr Mrs Ms Miss Dr Professor Doctor Sister Brother Father Mother Aunt Uncle Sir Madam Lady Saint
    Judge Captain Officer Inspector Sergeant Pastor Imam Rabbi Chief President Mayor Engineer
    North South East West God English Spanish French German Italian Arabic Chinese Japanese
"""
_PLACES = """
    Africa Asia Europe America Atlantic Pacific Mediterranean
    Afghanistan Albania Algeria Angola Argentina Armenia Australia Austria Azerbaijan Bahrain
    Bangladesh Barbados Belarus Belgium Belize Benin Bhutan Bolivia Bosnia Botswana Brazil Britain
    Bulgaria Burkina Burundi Cambodia Cameroon Canada Chile China Colombia Congo Croatia Cuba Cyprus
    Denmark Dominica Ecuador Egypt England Eritrea Estonia Eswatini Ethiopia Fiji Finland France
    Gabon Gambia Georgia Germany Ghana Greece Greenland Grenada Guatemala Guinea Guyana Haiti
    Honduras Hungary Iceland India Indonesia Iran Iraq Ireland Israel Italy Jamaica Japan Jordan
    Kazakhstan Kenya Korea Kosovo Kuwait Kyrgyzstan Lanka Laos Latvia Lebanon Lesotho Liberia Libya
    Lithuania Luxembourg Madagascar Malawi Malaysia Maldives Mali Malta Mauritania Mauritius Mexico
    Moldova Mongolia Montenegro Morocco Mozambique Myanmar Namibia Nepal Netherlands Nicaragua Niger
    Nigeria Norway Oman Pakistan Palestine Panama Papua Paraguay Peru Philippines Poland Portugal
    Qatar Romania Russia Rwanda Samoa Scotland Senegal Serbia Seychelles Singapore Slovakia Slovenia
    Somalia Spain Sri Sudan Suriname Sweden Switzerland Syria Taiwan Tajikistan Tanzania Thailand
    Togo Tonga Trinidad Tunisia Turkey Turkmenistan Uganda Ukraine Uruguay Uzbekistan Vanuatu
    Venezuela Vietnam Wales Yemen Zambia Zealand Zimbabwe
"""

NO_NAMES = frozenset(_WORDS.split()).union(_PLACES.split())
"""Weekdays, months, titles, languages; countries and continents, which are no longer few in a set
that is set all over the world."""
