"""The path algebra: what a pattern matches, and whether two patterns have a path in common. Exact.

    text ──syntax──> tokens ──normal_form──> segments ──pattern──> Pattern ──overlap──> a witness
          braces,            `.` and `..`,             alternatives,
          classes,           slashes,                  literal prefix
          escapes            Unicode form

- `pattern` describes the language. Start there: `parse(text)`, `Pattern.matches(path)`.
- `overlap` decides whether two patterns have a path in common, and names one (the *witness*). It
  opens with the argument.
- `segment` is one name of a path: literal, with wildcards (`Glob`), or `**` (`DEPTH`); `charset` is
  one character of it, as intervals of code points.
- `syntax` reads the text and expands braces; `normal_form` gives equal patterns one spelling.

Words: a *path* is names with `/` between them; a *segment* is what a pattern says about one name;
an *alternative* is a pattern without braces: a literal *prefix* and the *rest*; a pattern is
*open-ended* if its last segment is literal, so that it may turn out to be a folder.

Laws (`tests/unit/model/test_overlap_exact.py` compares with brute force on small alphabets):

    overlap(a, b) is a path that both match, or None if there is none
    overlap(a, b) is None  exactly when  overlap(b, a) is None
    parse(s) == parse(t)   if s and t differ only in spelling
    brace expansion distributes: {x,y}z overlaps p  exactly when  xz or yz does

Costs: parsing is linear in the text times the alternatives (at most 256); an overlap of two
alternatives is polynomial, the product of their lengths on both levels, however many `*` and `**`
there are. Parsed patterns and overlaps are cached (65,536 each).

What it does not know: the disk. Whether a plain name is a folder, where symlinks lead and whether
the file system ignores case is looked up by the runtime at submission (`runtime/claim_paths.py`).
"""
