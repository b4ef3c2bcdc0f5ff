package sqlite

// Format is the number of the layout of the file. Open reads and writes no other.
const Format = formatVersion
