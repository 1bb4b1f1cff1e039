"""Checking millions of files that stand in Parquet: texts as rows in, findings as rows out, on one machine or many.

`texts` lints the files of one repository from memory, `inside` is the process in which that happens, and `keeper` the
other end: it ends the process where a file takes too much, and begins again without that file. `table` makes an Arrow
table of files into one of findings; `parts` reads and writes Parquet, `engines` spreads it, `command` reports.
"""
