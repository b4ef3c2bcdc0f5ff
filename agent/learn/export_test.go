package learn

// Comment is for the test of texts that would end a comment.
var Comment = comment
