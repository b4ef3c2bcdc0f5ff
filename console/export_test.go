package console

// RowsOf is rowsOf for tests.
var RowsOf = rowsOf
