// Package guides holds no code but its tests. They run every block of README.md
// and of the tutorial, the guides and the reference in docs as it is written
// there. A block of Go code is a region of a test, byte for byte. Each other block
// is taken out of its document by the test that runs it. Some pages are transcripts:
// TestTranscripts runs their commands and compares what they print; with -update it
// rewrites it.
package guides
