// Package policies holds the policies that come with remit, as files and
// nothing else: package perm/rego makes an engine of them. Each pack has its
// tests beside it.
package policies

import (
	"embed"
	"io/fs"
)

// Prefix stands before the files of a pack where a reason names its rule:
// builtin:workspace/workspace.rego:51 is no file of the reader's folder.
const Prefix = "builtin:"

//go:embed workspace/*.rego
var workspace embed.FS

// Workspace returns the pack that holds when no policy is given: the root
// workspace may be read, and changed in ways that can be taken back; .git and
// files that usually hold secrets are out of reach; a person is asked about
// everything with effects that undo does not cover; the rest is denied.
func Workspace() fs.FS { return workspace }
