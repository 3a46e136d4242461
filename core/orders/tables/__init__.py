"""Tables of recipients: an uploaded CSV or .xlsx file whose rows are the recipients of a delivery (D-45).

Nobody is stored: a row has its contacts, or names a person of the directory, and its cells are the values of a personal
text.

    table_reader     the uploaded file → the cells of its rows (csv_rows of the import; workbook)
    workbook         asks workbook_program, which reads .xlsx in a process of its own
    row_addressees   rows → addressees, with every row that was not understood
"""
