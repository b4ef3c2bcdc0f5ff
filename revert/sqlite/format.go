package sqlite

// Format is the version of the file layout. Open accepts no other.
const Format = formatVersion
