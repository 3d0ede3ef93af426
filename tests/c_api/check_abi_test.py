"""Negative controls of check_abi.py: what breaks programs is refused, and what does not is not."""

import unittest

from check_abi import check, function_line, program_of, words

STORED = {
    "constant TUTTI_A": "1",
    "field tutti_x_t.a": "8 bytes at 8",
    "field tutti_x_t.size": "8 bytes at 0",
    "field tutti_y_t.b": "4 bytes at 0",
    "function tutti_f": "int(int a)",
    "struct tutti_x_t": "16 bytes",
    "struct tutti_y_t": "4 bytes",
}


class Abi(unittest.TestCase):
    def refuses(self, lines: dict, *expected: str):
        findings = check(STORED, lines)
        self.assertEqual(len(findings), 1, findings)
        for word in expected:
            self.assertIn(word, findings[0])

    def test_what_is_stored(self):
        self.assertEqual(check(STORED, dict(STORED)), [])

    def test_what_is_gone(self):
        for name in ("constant TUTTI_A", "function tutti_f"):
            self.refuses({key: value for key, value in STORED.items() if key != name}, "gone", name)

    def test_what_is_another(self):
        self.refuses(STORED | {"constant TUTTI_A": "2"}, "breaks", "TUTTI_A was 1 and is 2")
        self.refuses(STORED | {"function tutti_f": "int(long a)"}, "breaks", "tutti_f")
        self.refuses(STORED | {"field tutti_y_t.b": "8 bytes at 0"}, "breaks", "tutti_y_t.b")

    def test_a_struct_without_a_size_never_grows(self):
        self.refuses(STORED | {"struct tutti_y_t": "8 bytes"}, "breaks", "tutti_y_t was 4")

    def test_a_struct_with_a_size_grows_at_its_end(self):
        lines = STORED | {"struct tutti_x_t": "24 bytes", "field tutti_x_t.c": "8 bytes at 16"}
        self.assertTrue(all("not stored" in finding for finding in check(STORED, lines)))

    def test_a_struct_with_a_size_never_shrinks(self):
        self.assertIn("breaks", check(STORED, STORED | {"struct tutti_x_t": "8 bytes"})[0])

    def test_padding_at_the_end(self):
        lines = STORED | {"struct tutti_x_t": "24 bytes", "field tutti_x_t.c": "4 bytes at 16"}
        self.refuses(lines, "tutti_x_t ends in padding")

    def test_what_is_new(self):
        self.refuses(STORED | {"function tutti_g": "void(void)"}, "not stored", "tutti_g")

    def test_how_functions_and_structs_are_read(self):
        self.assertEqual(words("const  char * ( int a , int b )"), "const char*(int a,int b)")
        tag = {"name": "tutti_f", "signature": "( int * a )", "typeref": "typename:tutti_status_t"}
        self.assertEqual(function_line(tag), "function tutti_f = tutti_status_t(int*a)")
        program = program_of([{"kind": "struct", "name": "s"}, {"kind": "enumerator", "name": "E"},
                              {"kind": "member", "name": "m", "scope": "s"},
                              {"kind": "member", "name": "u", "scope": "s::anonymous"}])
        self.assertIn("offsetof(s, m)", program)
        self.assertIn("(long long)E", program)
        self.assertNotIn("anonymous", program)


if __name__ == "__main__":
    unittest.main()
