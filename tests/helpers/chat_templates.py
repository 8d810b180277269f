"""Chat templates like those that real models come with, cut down to what sets them apart."""

CHATML_WITH_DEFAULT = (
    "{% if messages[0].role != 'system' %}"
    "{{ '<|im_start|>system\nYou are Qwen.<|im_end|>\n' }}"
    "{% endif %}"
    "{% for message in messages %}"
    "{{ '<|im_start|>' + message.role + '\n' + message.content + '<|im_end|>\n' }}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
"""Qwen 2.5: a system line of its own where the conversation has none."""

GEMMA = (
    "{{ bos_token }}"
    "{% if messages[0]['role'] == 'system' %}"
    "{{ raise_exception('System role not supported') }}"
    "{% endif %}"
    "{% for message in messages %}"
    "{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}"
    "{{ raise_exception('Conversation roles must alternate user/assistant/user/assistant/...') }}"
    "{% endif %}"
    "{% set role = 'model' if message['role'] == 'assistant' else message['role'] %}"
    "{{ '<start_of_turn>' + role + '\n' + message['content'] | trim + '<end_of_turn>\n' }}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '<start_of_turn>model\n' }}{% endif %}"
)
"""No system role, strict alternation, BOS in the template."""

SILENT_SYSTEM = (
    "{% for message in messages %}"
    "{% if message.role != 'system' %}"
    "{{ '<|im_start|>' + message.role + '\n' + message.content + '<|im_end|>\n' }}"
    "{% endif %}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
"""Says nothing about a system message, and drops it."""

LLAMA2 = (
    "{% if messages[0].role == 'system' %}"
    "{% set system, turns = messages[0].content, messages[1:] %}"
    "{% else %}{% set system, turns = '', messages %}{% endif %}"
    "{% for message in turns %}"
    "{% if (message.role == 'user') != (loop.index0 % 2 == 0) %}"
    "{{ raise_exception('roles must alternate') }}"
    "{% endif %}"
    "{% if loop.first and system %}"
    "{% set content = '<<SYS>>\n' + system + '\n<</SYS>>\n\n' + message.content %}"
    "{% else %}{% set content = message.content %}{% endif %}"
    "{% if message.role == 'user' %}{{ bos_token + '[INST] ' + content.strip() + ' [/INST]' }}"
    "{% else %}{{ ' ' + content.strip() + ' ' + eos_token }}{% endif %}"
    "{% endfor %}"
)
"""Roles marked by plain text, spaces around the answer, a BOS before every user turn."""

MISTRAL = (
    "{{ bos_token }}"
    "{% if messages[0].role == 'system' %}"
    "{% set system, turns = messages[0].content + '\n\n', messages[1:] %}"
    "{% else %}{% set system, turns = '', messages %}{% endif %}"
    "{% for message in turns %}"
    "{% if message.role == 'user' %}"
    "{{ '[INST] ' + (system if loop.last else '') + message.content + '[/INST]' }}"
    "{% else %}{{ ' ' + message.content + eos_token }}{% endif %}"
    "{% endfor %}"
)
"""The system text moves into the last user turn."""

GLM = (
    "{% for message in messages %}"
    "{{ '<|' + message.role + '|>\n' + message.content }}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|assistant|>' }}{% endif %}"
)
"""No end of turn: the model ends its turn with the opening token of the next one."""

PLAIN = (
    "{% for message in messages %}{{ message.role + ': ' + message.content + '\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ 'assistant:' }}{% endif %}"
)
"""No control token at all."""

QWEN3 = (
    "{% for message in messages %}"
    "{% set content = message.content.split('</think>')[-1].lstrip('\n')"
    " if message.role == 'assistant' else message.content %}"
    "{{ '<|im_start|>' + message.role + '\n' + content + '<|im_end|>\n' }}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}"
    "{% if enable_thinking is defined and enable_thinking is false %}"
    "{{ '<think>\n\n</think>\n\n' }}"
    "{% endif %}{% endif %}"
)
"""Thinking can be turned off; earlier thinking is dropped."""

OPENS_THINKING = (
    "{% for message in messages %}"
    "{% set content = message.content.split('</think>')[-1].lstrip('\n')"
    " if message.role == 'assistant' else message.content %}"
    "{{ '<|im_start|>' + message.role + '\n' + content + '<|im_end|>\n' }}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n<think>\n' }}{% endif %}"
)
"""Always thinks, from an opening tag in the generation prompt; earlier thinking is dropped."""

OPENS_AND_KEEPS_THINKING = (
    "{% for message in messages %}"
    "{{ '<|im_start|>' + message.role + '\n' + message.content + '<|im_end|>\n' }}"
    "{% endfor %}"
    "{# thinking ends with </think> #}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n<think>\n' }}{% endif %}"
)
"""The same, but earlier turns are shown whole."""

DATED = (
    "{% if not date_string is defined %}{% set date_string = strftime_now('%d %b %Y') %}{% endif %}"
    "{{ 'Today Date: ' + date_string + strftime_now(' (%Y)') + '\n' }}"
    "{% for message in messages %}"
    "{{ '<|im_start|>' + message.role + '\n' + message.content + '<|im_end|>\n' }}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
"""Llama 3: writes today's date."""

LOSES_EARLIER = (
    "{{ '<|im_start|>user\n' + messages[-1].content + '<|im_end|>\n<|im_start|>assistant\n' }}"
)
"""Shows the last message only."""

REPEATS_USER = (
    "{% for message in messages %}"
    "{{ '<|im_start|>' + message.role + '\n' + message.content + '<|im_end|>\n' }}"
    "{% endfor %}"
    "{{ 'Answer this: ' + messages[-1].content + '\n<|im_start|>assistant\n' }}"
)
"""Shows the last message twice."""
