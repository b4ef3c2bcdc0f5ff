package rego

import "github.com/open-policy-agent/opa/v1/ast"

// key numbers the names of the fields of an input document. Their terms are
// made once an Engine, because every decision needs most of them.
type key int

const (
	kPrincipal key = iota
	kID
	kKind
	kRoles
	kChain
	kSession
	kLabels
	kTools
	kRecent
	kRun
	kDenied
	kFailed
	kInFlight
	kSums
	kWindows
	kTool
	kStatus
	kTxn
	kCalls
	kDepth
	kName
	kVersion
	kTags
	kDigest
	kProvenance
	kCanVerify
	kCanRevert
	kConfinement
	kDestination
	kGrade
	kCall
	kArgs
	kEffectClass
	kDeclared
	kBatch
	kIndex
	kCount
	kAccess
	kAction
	kResource
	kMethod
	kDynamic
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
	kPurpose
	kOutput
	kChanges
	kBefore
	kAfter
	kTime
	keyCount
)

type keys [keyCount]*ast.Term

func newKeys() keys {
	names := [keyCount]string{
		kPrincipal: "principal", kID: "id", kKind: "kind", kRoles: "roles", kChain: "chain",
		kSession: "session", kLabels: "labels", kTools: "tools", kRecent: "recent",
		kRun: "run", kDenied: "denied", kFailed: "failed", kInFlight: "in_flight",
		kSums: "sums", kWindows: "windows", kTool: "tool", kStatus: "status",
		kTxn: "txn", kCalls: "calls", kDepth: "depth",
		kName: "name", kVersion: "version", kTags: "tags", kDigest: "digest", kProvenance: "provenance",
		kCanVerify: "can_verify", kCanRevert: "can_revert",
		kConfinement: "confinement", kDestination: "destination", kGrade: "grade",
		kCall: "call", kArgs: "args", kEffectClass: "effect_class", kDeclared: "declared",
		kBatch: "batch", kIndex: "index", kCount: "count",
		kAccess: "access", kAction: "action", kResource: "resource", kMethod: "method", kDynamic: "dynamic",
		kText: "text", kRoot: "root", kPath: "path", kSegments: "segments", kExt: "ext",
		kScheme: "scheme", kHost: "host", kPort: "port",
		kDatabase: "database", kTable: "table", kStatement: "statement",
		kProgram: "program", kArgv: "argv", kServer: "server",
		kPurpose: "purpose", kOutput: "output", kChanges: "changes",
		kBefore: "before", kAfter: "after", kTime: "time",
	}
	var k keys
	for i, name := range names {
		k[i] = ast.StringTerm(name)
	}
	return k
}
