// Package guides contains only tests. They run every block of README.md and of
// the tutorial, the guides and the reference in docs unchanged. A block of Go
// code is a region of a test, byte for byte. The test that runs any other block
// reads it from its page. A block that no test can run has a mark with the
// reason on the line before it. Some pages are transcripts: TestTranscripts
// runs their commands and compares the output; with -update it rewrites the
// page. The commands in sentences of all pages are checked against the help of
// remit, the Makefile and the tests.
package guides
