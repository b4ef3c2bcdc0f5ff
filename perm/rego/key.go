package rego

import "github.com/open-policy-agent/opa/v1/ast"

// key numbers the names of the fields inside lists and counts of an input
// document. An Engine creates their terms once.
type key int

const (
	kKind key = iota
	kRun
	kDenied
	kFailed
	kInFlight
	kSums
	kWindows
	kTool
	kStatus
	kName
	kResource
	kText
	kRoot
	kPath
	kSegments
	kExt
	kScheme
	kHost
	kPort
	kDatabase
	kTable
	kStatement
	kProgram
	kArgv
	kServer
	kBefore
	kAfter
	keyCount
)

type keys [keyCount]*ast.Term

func newKeys() keys {
	names := [keyCount]string{
		kKind:      "kind",
		kRun:       "run",
		kDenied:    "denied",
		kFailed:    "failed",
		kInFlight:  "in_flight",
		kSums:      "sums",
		kWindows:   "windows",
		kTool:      "tool",
		kStatus:    "status",
		kName:      "name",
		kResource:  "resource",
		kText:      "text",
		kRoot:      "root",
		kPath:      "path",
		kSegments:  "segments",
		kExt:       "ext",
		kScheme:    "scheme",
		kHost:      "host",
		kPort:      "port",
		kDatabase:  "database",
		kTable:     "table",
		kStatement: "statement",
		kProgram:   "program",
		kArgv:      "argv",
		kServer:    "server",
		kBefore:    "before",
		kAfter:     "after",
	}
	var k keys
	for i, name := range names {
		k[i] = ast.StringTerm(name)
	}
	return k
}
