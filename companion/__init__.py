"""The code of the book *Two Chain Rules*: each module is a chapter's own formulas."""
