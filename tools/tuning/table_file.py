"""Tuning tables as files, one line per entry."""
import json


def replace_entries(file_name, made, is_replaced):
    """Puts the entries `made` after those of the file that are not replaced. A file that does not exist has none."""
    try:
        with open(file_name, encoding="utf-8") as file:
            table = json.load(file)
    except FileNotFoundError:
        table = {"schema": "tutti.tuning/1", "entries": []}
    kept = [entry for entry in table["entries"] if not is_replaced(entry)]
    lines = ",\n".join("    " + json.dumps(entry) for entry in kept + made)
    with open(file_name, "w", encoding="utf-8") as file:
        file.write(f'{{\n  "schema": "{table["schema"]}",\n  "entries": [\n{lines}\n  ]\n}}\n')
