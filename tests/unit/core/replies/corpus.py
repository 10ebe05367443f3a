"""Replies of different shapes, each with the program that must be extracted from it."""

from __future__ import annotations

from dataclasses import dataclass

SOLVE = """\
import openpyxl

wb = openpyxl.load_workbook("/mnt/data/input/1_7_input.xlsx")
ws = wb["Sheet1"]
ws["B2"] = "=SUM(A1:A9)"
wb.save("/mnt/data/output/1_7_output.xlsx")
"""
LOOK = """\
import pandas as pd

df = pd.read_excel("/mnt/data/input/1_7_input.xlsx")
print(df.head())
"""
FUNCTION = """\
from openpyxl import load_workbook

def main():
    wb = load_workbook("/mnt/data/input/1_7_input.xlsx")
    ws = wb.active
    for row in range(2, ws.max_row + 1):
        ws.cell(row=row, column=3).value = ws.cell(row=row, column=1).value
    wb.save("/mnt/data/output/1_7_output.xlsx")

if __name__ == "__main__":
    main()
"""
WITH_FENCE = '''\
import openpyxl

TEXT = """
a fence inside a string:
```
not the end
```
"""
wb = openpyxl.load_workbook("/mnt/data/input/1_7_input.xlsx")
wb.active["A1"] = TEXT
wb.save("/mnt/data/output/1_7_output.xlsx")
'''


@dataclass(frozen=True)
class Reply:
    """One reply of the corpus."""

    name: str
    text: str
    code: str | None
    form: str
    truncated: bool = False


def _indent(code: str, by: str) -> str:
    return "".join(f"{by}{line}\n" if line else "\n" for line in code.splitlines())


def _escaped(code: str) -> str:
    return code.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


_HALF = SOLVE[: SOLVE.index("=SUM")]

FENCED = [
    Reply("plain", f"```python\n{SOLVE}```", SOLVE, "fence"),
    Reply("prose_around", f"Here is it:\n\n```python\n{SOLVE}```\n\nIt sums up.", SOLVE, "fence"),
    Reply("no_tag", f"Sure.\n```\n{SOLVE}```\n", SOLVE, "fence"),
    Reply("tag_py", f"```py\n{SOLVE}```", SOLVE, "fence"),
    Reply("tag_python3", f"```python3\n{SOLVE}```", SOLVE, "fence"),
    Reply("tag_capitals", f"```Python\n{SOLVE}```", SOLVE, "fence"),
    Reply("tag_behind_blank", f"``` python\n{SOLVE}```", SOLVE, "fence"),
    Reply("tag_braces", f"```{{.python .numberLines}}\n{SOLVE}```", SOLVE, "fence"),
    Reply("tag_with_title", f'```python title="solve.py"\n{SOLVE}```', SOLVE, "fence"),
    Reply("tag_tool_code", f"```tool_code\n{SOLVE}```", SOLVE, "fence"),
    Reply("tag_unknown", f"```spreadsheet-script\n{SOLVE}```", SOLVE, "fence"),
    Reply("tilde_fence", f"~~~python\n{SOLVE}~~~\nDone.", SOLVE, "fence"),
    Reply("four_backticks", f"````python\n{SOLVE}````", SOLVE, "fence"),
    Reply("long_closing_fence", f"```python\n{SOLVE}`````", SOLVE, "fence"),
    Reply(
        "crlf", f"```python\r\n{SOLVE.replace(chr(10), chr(13) + chr(10))}```\r\n", SOLVE, "fence"
    ),
    Reply("blank_lines_inside", f"```python\n\n\n{SOLVE}\n\n```", SOLVE, "fence"),
    Reply(
        "in_list",
        f"1. Run this:\n\n    ```python\n{_indent(SOLVE, '    ')}    ```\n",
        SOLVE,
        "fence",
    ),
    Reply("list_item_fence", f"- ```python\n{_indent(SOLVE, '  ')}  ```\n", SOLVE, "fence"),
    Reply("in_quote", "> ```python\n" + _indent(SOLVE, "> ") + "> ```\n", SOLVE, "fence"),
    Reply("tabbed_list", f"*\t```python\n{_indent(SOLVE, '    ')}    ```\n", SOLVE, "fence"),
    Reply("glued_end", f"```python\n{SOLVE.rstrip()}```", SOLVE, "fence"),
    Reply("fence_behind_prose", f"The program is: ```python\n{SOLVE}```", SOLVE, "fence"),
    Reply("word_python_inside", f"```\npython\n{SOLVE}```", SOLVE, "fence"),
    Reply("in_markdown_fence", f"````markdown\nSo:\n```python\n{SOLVE}```\n````", SOLVE, "fence"),
    Reply(
        "in_markdown_same_fence", f"```markdown\nSo:\n```python\n{SOLVE}```\n```", SOLVE, "fence"
    ),
    Reply("fence_in_string", f"```python\n{WITH_FENCE}```\nDone.", WITH_FENCE, "fence"),
    Reply(
        "nbsp_indent", f"```python\n{FUNCTION.replace('    ', chr(160) * 4)}```", FUNCTION, "fence"
    ),
    Reply("special_token_at_end", f"```python\n{SOLVE}```<|im_end|>", SOLVE, "fence"),
    Reply(
        "magic_inside",
        f"```python\n!pip install openpyxl\n%matplotlib inline\n{SOLVE}```",
        f"# !pip install openpyxl\n# %matplotlib inline\n{SOLVE}",
        "fence",
    ),
    Reply(
        "console_prompts",
        "```python\n>>> import openpyxl\n>>> for x in [1]:\n...     print(x)\n1\n```",
        "import openpyxl\nfor x in [1]:\n    print(x)\n",
        "fence",
    ),
]

SEVERAL = [
    Reply(
        "last_of_two",
        f"```python\n{LOOK}```\nNow the answer:\n```python\n{SOLVE}```",
        SOLVE,
        "fence",
    ),
    Reply(
        "shell_before", f"```bash\npip install openpyxl\n```\n```python\n{SOLVE}```", SOLVE, "fence"
    ),
    Reply(
        "shell_after", f"```python\n{SOLVE}```\nRun:\n```bash\npython solve.py\n```", SOLVE, "fence"
    ),
    Reply(
        "output_after", f"```python\n{SOLVE}```\nprints\n```\n   A  B\n0  1  2\n```", SOLVE, "fence"
    ),
    Reply(
        "formula_after", f"```python\n{SOLVE}```\nor\n```excel\n=SUM(A1:A9)\n```", SOLVE, "fence"
    ),
    Reply(
        "vba_before",
        f'```vba\nSub A()\nRange("A1") = 1\nEnd Sub\n```\n```python\n{SOLVE}```',
        SOLVE,
        "fence",
    ),
    Reply("json_before", f'```json\n{{"a": 1}}\n```\n```python\n{SOLVE}```', SOLVE, "fence"),
    Reply(
        "joined_in_steps",
        "Step 1:\n```python\nimport openpyxl\nwb = openpyxl.load_workbook('/i.xlsx')\n```\n"
        "Step 2:\n```python\nws = wb.active\nws['A1'] = 1\n```\n"
        "Step 3:\n```python\nwb.save('/o.xlsx')\n```",
        "import openpyxl\nwb = openpyxl.load_workbook('/i.xlsx')\n\n"
        "ws = wb.active\nws['A1'] = 1\n\nwb.save('/o.xlsx')\n",
        "joined",
    ),
    Reply(
        "joined_over_a_gap",
        "```python\nimport openpyxl\nwb = openpyxl.load_workbook('/i.xlsx')\n```\n"
        "```text\nan aside\n```\n```python\nwb.save('/o.xlsx')\n```",
        "import openpyxl\nwb = openpyxl.load_workbook('/i.xlsx')\n\nwb.save('/o.xlsx')\n",
        "joined",
    ),
    Reply(
        "definition_then_call",
        "```python\ndef solve(path):\n    print(path)\n```\nUse it:\n"
        "```python\nsolve('/i.xlsx')\n```",
        "def solve(path):\n    print(path)\n\nsolve('/i.xlsx')\n",
        "joined",
    ),
    Reply(
        "unrelated_first_left_out",
        "```python\nx = 1\nprint(x)\n```\n```python\nimport openpyxl\n"
        "wb = openpyxl.load_workbook('/i.xlsx')\n```\n```python\nwb.save('/o.xlsx')\n```",
        "import openpyxl\nwb = openpyxl.load_workbook('/i.xlsx')\n\nwb.save('/o.xlsx')\n",
        "joined",
    ),
    Reply(
        "untagged_table_before", f"```\nA | B\n--|--\n1 | 2\n```\n```\n{SOLVE}```", SOLVE, "fence"
    ),
    Reply("unclosed_then_another", f"```python\n{LOOK}\n```python\n{SOLVE}```", SOLVE, "fence"),
]

CUT_OFF = [
    Reply("unclosed_whole", f"```python\n{SOLVE}", SOLVE, "unclosed", truncated=True),
    Reply("unclosed_half", f"```python\n{_HALF}", f"{_HALF}\n", "unclosed", truncated=True),
    Reply(
        "whole_then_half",
        f"```python\n{SOLVE}```\nBetter:\n```python\n{_HALF}",
        SOLVE,
        "fence",
        truncated=True,
    ),
    Reply(
        "look_then_whole_unclosed", f"```python\n{LOOK}```\n```python\n{SOLVE}", SOLVE, "unclosed"
    ),
    Reply(
        "bare_half", f"{SOLVE}ws.append([1,\n", f"{SOLVE}ws.append([1,\n", "bare", truncated=True
    ),
    Reply(
        "wrapper_half",
        f"<execute>\n{SOLVE}ws.append([1,",
        f"{SOLVE}ws.append([1,\n",
        "wrapper",
        truncated=True,
    ),
]

WRAPPED = [
    Reply("execute_tag", f"<execute>\n{SOLVE}</execute>", SOLVE, "wrapper"),
    Reply(
        "execute_python_tag",
        f"I look.\n<execute_python>\n{SOLVE}</execute_python>",
        SOLVE,
        "wrapper",
    ),
    Reply("code_tag", f"<code>\n{SOLVE}</code>", SOLVE, "wrapper"),
    Reply("code_tag_with_language", f'<code language="python">\n{SOLVE}</code>', SOLVE, "wrapper"),
    Reply("cdata", f"<code><![CDATA[\n{SOLVE}]]></code>", SOLVE, "wrapper"),
    Reply("fence_in_tag", f"<solution>\n```python\n{SOLVE}```\n</solution>", SOLVE, "wrapper"),
    Reply("answer_tag_with_code", f"<answer>\n{SOLVE}</answer>", SOLVE, "wrapper"),
    Reply(
        "invoke_parameter",
        f'<function_calls><invoke name="python"><parameter name="code">{SOLVE}</parameter></invoke>'
        "</function_calls>",
        SOLVE,
        "wrapper",
    ),
    Reply(
        "function_equals",
        f"<tool_call>\n<function=run>\n<parameter=code>\n{SOLVE}</parameter>\n</function>\n</tool_call>",
        SOLVE,
        "wrapper",
    ),
    Reply(
        "tool_call_json",
        f'<tool_call>\n{{"name": "python", "arguments": {{"code": "{_escaped(SOLVE)}"}}}}\n'
        "</tool_call>",
        SOLVE,
        "wrapper",
    ),
    Reply(
        "tool_calls_token",
        f'[TOOL_CALLS] [{{"name": "python", "arguments": {{"code": "{_escaped(SOLVE)}"}}}}]',
        SOLVE,
        "wrapper",
    ),
    Reply("python_tag_token", f"<|python_tag|>{SOLVE}<|eom_id|>", SOLVE, "wrapper"),
    Reply(
        "arg_key_value",
        f"<tool_call>run\n<arg_key>code</arg_key>\n<arg_value>{SOLVE}</arg_value></tool_call>",
        SOLVE,
        "wrapper",
    ),
    Reply("json_reply", f'{{"thought": "sum", "code": "{_escaped(SOLVE)}"}}', SOLVE, "wrapper"),
    Reply("json_in_fence", f'```json\n{{"code": "{_escaped(SOLVE)}"}}\n```', SOLVE, "wrapper"),
    Reply(
        "entities",
        "<code>\nfor i in range(3):\n    if i &lt; 2 and i &gt; 0:\n        print(i)\n</code>",
        "for i in range(3):\n    if i < 2 and i > 0:\n        print(i)\n",
        "wrapper",
    ),
    Reply(
        "prose_answer_beside_fence", f"```python\n{SOLVE}```\n<answer>done</answer>", SOLVE, "fence"
    ),
    Reply(
        "tag_inside_program",
        f"```python\nx = '<code>1</code>'\n{SOLVE}```",
        f"x = '<code>1</code>'\n{SOLVE}",
        "fence",
    ),
]

REASONED = [
    Reply(
        "think",
        f"<think>\nmaybe\n```python\n{LOOK}```\n</think>\n```python\n{SOLVE}```",
        SOLVE,
        "fence",
    ),
    Reply(
        "think_end_only",
        f"so I would\n```python\n{LOOK}```\n</think>\n```python\n{SOLVE}```",
        SOLVE,
        "fence",
    ),
    Reply("think_never_ends", f"<think>\nlet me see\n```python\n{LOOK}```\nhm", None, "none"),
    Reply("reasoning_tag", f"<reasoning>import nothing</reasoning>\n{SOLVE}", SOLVE, "bare"),
    Reply(
        "begin_of_thought",
        f"<|begin_of_thought|>x = 1<|end_of_thought|><|begin_of_solution|>"
        f"\n```python\n{SOLVE}```<|end_of_solution|>",
        SOLVE,
        "fence",
    ),
    Reply(
        "bracket_think", f"[THINK]```python\n{LOOK}```[/THINK]```python\n{SOLVE}```", SOLVE, "fence"
    ),
    Reply(
        "channels",
        f"<|channel|>analysis<|message|>x = 1 maybe"
        f"<|channel|>final<|message|>\n```python\n{SOLVE}```",
        SOLVE,
        "fence",
    ),
    Reply("only_reasoning_has_code", f"<think>easy</think>{SOLVE}", SOLVE, "bare"),
]

BARE = [
    Reply("nothing_but_code", SOLVE, SOLVE, "bare"),
    Reply("function_program", FUNCTION, FUNCTION, "bare"),
    Reply("prose_before", f"Here is the program that you asked for:\n\n{SOLVE}", SOLVE, "bare"),
    Reply(
        "prose_after",
        f"{SOLVE}\nThis code opens the workbook and writes a sum into it.",
        SOLVE,
        "bare",
    ),
    Reply("comment_first", f"# sums up column A\n{SOLVE}", f"# sums up column A\n{SOLVE}", "bare"),
    Reply("one_escaped_line", f'{{"solution": "{_escaped(SOLVE)}"}}', SOLVE, "wrapper"),
    Reply("notebook_cell", f"In [1]: {SOLVE}", SOLVE, "bare"),
    Reply("inline_backticks", "Use `ws['A1'] = 1`, then save.", None, "none"),
    Reply(
        "prose_only", "I am sorry, I cannot open workbooks. Please give me the data.", None, "none"
    ),
    Reply("empty", "", None, "none"),
    Reply("blank", "  \n\n ", None, "none"),
    Reply("formula_only", "Put this into B2:\n\n=SUM(A1:A9)", None, "none"),
    Reply("only_shell", "```bash\npip install openpyxl\n```", None, "none"),
    Reply("only_vba", '```vba\nSub A()\nRange("A1") = 1\nEnd Sub\n```', None, "none"),
    Reply("empty_fence", "```python\n```", None, "none"),
]

_TWO_STEPS = "import openpyxl\nwb = openpyxl.load_workbook('/i.xlsx')\n\nwb.save('/o.xlsx')\n"
_THREE_LINES = "import openpyxl\nwb = openpyxl.load_workbook('/i.xlsx')\nwb.save('/o.xlsx')\n"
_CHECK = """\
import openpyxl
done = openpyxl.load_workbook('/mnt/data/output/1_7_output.xlsx')
print(done.active['B2'].value)
"""
_WITH_EXAMPLE = '''\
import openpyxl

def solve(source, target):
    """Fills column B.

    Example:
    ```
    solve("a.xlsx", "b.xlsx")
    ```
    """
    openpyxl.load_workbook(source).save(target)

solve("/mnt/data/input/1_7_input.xlsx", "/mnt/data/output/1_7_output.xlsx")
'''

AS_MODELS_TALK = [
    Reply(
        "check_of_the_output_after",
        f"```python\n{SOLVE}```\n\nYou can check it:\n```python\n{_CHECK}```",
        SOLVE,
        "fence",
    ),
    Reply(
        "alternative_after",
        f"```python\n{SOLVE}```\nAlternatively:\n```python\n{FUNCTION}```",
        FUNCTION,
        "fence",
    ),
    Reply(
        "correction_after",
        f"```python\n{SOLVE.replace('B2', 'B3')}```\nWait, B3 is wrong:\n```python\n{SOLVE}```",
        SOLVE,
        "fence",
    ),
    Reply(
        "line_explained_before",
        f'The key is\n```python\nws["B2"] = "=SUM(A1:A9)"\n```\nin\n```python\n{SOLVE}```',
        SOLVE,
        "fence",
    ),
    Reply(
        "steps_then_all",
        "Step 1\n```python\nimport openpyxl\nwb = openpyxl.load_workbook('/i.xlsx')\n```\n"
        f"Step 2\n```python\nwb.save('/o.xlsx')\n```\nAll of it:\n```python\n{SOLVE}```",
        SOLVE,
        "fence",
    ),
    Reply(
        "numbered_steps",
        "1. Load\n   ```python\n   import openpyxl\n   wb = openpyxl.load_workbook('/i.xlsx')\n"
        "   ```\n2. Save\n   ```python\n   wb.save('/o.xlsx')\n   ```\n",
        _TWO_STEPS,
        "joined",
    ),
    Reply(
        "imports_in_a_block_of_their_own",
        "```python\nimport openpyxl\n```\nthen\n```python\n"
        "wb = openpyxl.load_workbook('/i.xlsx')\nwb.save('/o.xlsx')\n```",
        "import openpyxl\n\nwb = openpyxl.load_workbook('/i.xlsx')\nwb.save('/o.xlsx')\n",
        "joined",
    ),
    Reply(
        "second_step_cut_off",
        "```python\nimport openpyxl\nwb = openpyxl.load_workbook('/i.xlsx')\n```\n"
        "then\n```python\nfor row in wb:\n    x = (",
        "import openpyxl\nwb = openpyxl.load_workbook('/i.xlsx')\n\nfor row in wb:\n    x = (\n",
        "unclosed",
        truncated=True,
    ),
    Reply(
        "install_in_a_python_fence",
        f"```python\n!pip install openpyxl\n```\n```python\n{SOLVE}```",
        SOLVE,
        "fence",
    ),
    Reply(
        "second_cut_off_behind_an_equals_sign",
        f"```python\n{SOLVE}```\nor\n```python\nimport pandas\ndf =",
        SOLVE,
        "fence",
        truncated=True,
    ),
    Reply("equation_in_prose", "We know:\n\nProfit = Revenue - Cost\n\nSo it is.", None, "none"),
    Reply("example_in_a_docstring", f"```python\n{_WITH_EXAMPLE}```", _WITH_EXAMPLE, "fence"),
    Reply(
        "fence_named_in_a_string",
        '```python\nprompt = "```python"\nprint(prompt)\n```',
        'prompt = "```python"\nprint(prompt)\n',
        "fence",
    ),
    Reply("prose_glued_to_the_end", f"```python\n{SOLVE}```That is all of it.", SOLVE, "fence"),
    Reply(
        "cell_magic",
        f"```python\n%%time\n{SOLVE}```",
        f"# %%time\n{SOLVE}",
        "fence",
    ),
    Reply(
        "line_numbers",
        "```python\n1 import openpyxl\n2 wb = openpyxl.load_workbook('/i.xlsx')\n"
        "3 wb.save('/o.xlsx')\n```",
        _THREE_LINES,
        "fence",
    ),
    Reply("zero_width_blank", f"```python\n\u200b{SOLVE}```", SOLVE, "fence"),
    Reply("byte_order_mark", f"\ufeff```python\n{SOLVE}```", SOLVE, "fence"),
    Reply("tag_with_path", f"```python /mnt/data/solve.py\n{SOLVE}```", SOLVE, "fence"),
    Reply("tag_with_colon", f"```python:solve.py\n{SOLVE}```", SOLVE, "fence"),
    Reply("tag_with_version", f"```Python3.11\n{SOLVE}```", SOLVE, "fence"),
    Reply("five_around_three", f"`````\n```python\n{SOLVE}```\n`````", SOLVE, "fence"),
    Reply("heredoc", f"```bash\ncat > s.py << 'EOF'\n{SOLVE}EOF\npython s.py\n```", SOLVE, "bare"),
    Reply("quotes_for_fences", f"'''python\n{SOLVE}'''", SOLVE, "fence"),
    Reply("one_backtick_around", f"`{SOLVE}`", SOLVE, "bare"),
    Reply("square_brackets", f"[PYTHON]\n{SOLVE}[/PYTHON]", SOLVE, "bare"),
    Reply(
        "html_pre",
        f'<pre><code class="language-python">\n{SOLVE}</code></pre>',
        SOLVE,
        "wrapper",
    ),
    Reply(
        "a_turn_made_up",
        "```python\nprint('look')\n```\n\nUser: It printed: look\n\n"
        f"Assistant: ```python\n{SOLVE}```",
        SOLVE,
        "fence",
    ),
    Reply("done_behind", f"```python\n{SOLVE}```\n\nDONE", SOLVE, "fence"),
    Reply(
        "list_behind_bare_code",
        f"Here is the code:\n\n{SOLVE}\n* It loads the workbook\n* It writes the formula\n",
        SOLVE,
        "bare",
    ),
    Reply("empty_fence_before_bare_code", f"```python\n```\n{SOLVE}", SOLVE, "bare"),
    Reply(
        "reasoning_then_end_token",
        f"<think>\nmaybe\n```python\n{LOOK}```\n</think>\n\n```python\n{SOLVE}```\n"
        "<\uff5cend\u2581of\u2581sentence\uff5c>",
        SOLVE,
        "fence",
    ),
    Reply(
        "channels_with_a_call",
        "<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|channel|>commentary to=python"
        f' <|constrain|>json<|message|>{{"code": "{_escaped(SOLVE)}"}}<|call|>',
        SOLVE,
        "wrapper",
    ),
]

_PREPARE = """\
import openpyxl
from openpyxl.styles import Font

bold = Font(bold=True)
wb = openpyxl.load_workbook("/mnt/data/input/1_7_input.xlsx")
"""
_FINISH = """\
wb.active["B2"].font = bold
wb.active["B2"] = "=SUM(A1:A9)"
wb.save("/mnt/data/output/1_7_output.xlsx")
"""
_TWO_BLOCKS = f"First:\n```python\n{_PREPARE}```\nThen:\n```python\n{_FINISH}```\n"
_BOTH = f"{_PREPARE}\n{_FINISH}"
_MARKS_OF_REASONING = [
    ("think", "<think>", "</think>"),
    ("reasoning", "<reasoning>", "</reasoning>"),
    ("bracket", "[THINK]", "[/THINK]"),
    ("thought", "<|begin_of_thought|>", "<|end_of_thought|>"),
    ("moon", "\N{WHITE LEFT-POINTING TRIANGLE}think\N{WHITE RIGHT-POINTING TRIANGLE}",
     "\N{WHITE LEFT-POINTING TRIANGLE}/think\N{WHITE RIGHT-POINTING TRIANGLE}"),
    ("end_only", "", "</think>"),
]  # fmt: skip

IN_TWO_BLOCKS = [
    Reply("two_blocks", _TWO_BLOCKS, _BOTH, "joined"),
    *(
        Reply(
            f"two_blocks_behind_{name}",
            f"{start}\nI would look first.\n```python\n{LOOK}```\nno\n{end}\n{_TWO_BLOCKS}",
            _BOTH,
            "joined",
        )
        for name, start, end in _MARKS_OF_REASONING
    ),
]

_STRINGS_LIKE_MARKS = """\
import openpyxl

PROMPT = '''
<think>
```python
not this
```
</think>
<code>nor this</code>
'''
openpyxl.Workbook().save("/o.xlsx")
"""

AS_THEY_STAND = [
    Reply(name, code, code, "bare")
    for name, code in (
        ("program_with_marks_in_its_strings", _STRINGS_LIKE_MARKS),
        ("program_between_blank_lines", f"\n\n  \n{SOLVE}\n\n"),
        ("program_without_a_last_newline", SOLVE.rstrip()),
        ("program_with_line_ends_of_windows", SOLVE.replace("\n", "\r\n")),
        ("program_with_line_ends_of_both", SOLVE.replace("\n", "\r\n", 2)),
        ("program_with_form_feed", f"import os\n\f\n{SOLVE}"),
        ("program_with_blanks_behind", SOLVE.replace("\n", "  \n")),
        ("program_with_no_break_blank_in_a_string", SOLVE.replace("Sheet1", "Sheet\u00a01")),
        ("program_with_a_prompt_in_a_string", f'HELP = """\n>>> f(x)\nIn [1]: 2\n"""\n{SOLVE}'),
        ("program_of_one_call", "print(1)"),
        ("program_of_one_line", "x = 1"),
        ("program_of_comments_and_code", "# only\r\nx = 1\r\n"),
        ("program_that_raises", "raise SystemExit"),
        ("program_with_a_docstring", f'"""Here is the program:\n\n```python\n"""\n{SOLVE}'),
        ("program_that_is_long", f"{SOLVE}ROWS = [\n{'    (1, 2, 3),' * 30_000}\n]\n"),
    )
]

BROKEN = [
    Reply(
        "bracket_left_open",
        "import os\nwb = load(\nwb.save('x')\n",
        "import os\nwb = load(\nwb.save('x')\n",
        "bare",
        truncated=True,
    ),
    Reply(
        "colon_forgotten",
        "for row in rows\n    print(row)\n",
        "for row in rows\n    print(row)\n",
        "bare",
    ),
    Reply("broken_in_a_fence", "Here:\n```python\nx = f(\n```", "x = f(\n", "fence"),
    Reply(
        "open_fence",
        "Here:\n```python\nx = 1\ny = 2",
        "x = 1\ny = 2\n",
        "unclosed",
        truncated=True,
    ),
    Reply(
        "second_cut_off_and_the_first_saves_nothing",
        "```python\na = 1\n```\nor\n```python\na = f(2)\nb = ",
        "a = f(2)\nb =\n",
        "unclosed",
        truncated=True,
    ),
    Reply("longer_fence_around_one_in_a_string", "Text\n````python\ns = '''\n```\n'''\n````",
          "s = '''\n```\n'''\n", "fence"),
    Reply("table_in_a_fence", "The result:\n```\n  A   B\n  1   2\n```", None, "none"),
    Reply("fence_within_quotes_for_fences", f"'''python\n{WITH_FENCE}'''", WITH_FENCE, "fence"),
    Reply("blank_lines_behind_reasoning", f"<think>a</think>\n  \n\n{SOLVE}", SOLVE, "bare"),
    Reply("word", "Sorry", None, "none"),
    Reply(
        "prose_with_marks_of_code",
        "Press the button (see above).\nThen = is shown.\nAnd so on, and so on.\nDone.",
        None,
        "none",
    ),
    Reply("null_characters", "\0" * 10, None, "none"),
]  # fmt: skip

CORPUS = [*FENCED, *SEVERAL, *CUT_OFF, *WRAPPED, *REASONED, *BARE, *AS_MODELS_TALK]
CORPUS += [*IN_TWO_BLOCKS, *AS_THEY_STAND, *BROKEN]
