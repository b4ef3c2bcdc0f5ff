// Package policies holds the policies that come with remit, as files and
// nothing else: package perm/rego makes an engine of them. Each pack has its
// tests beside it.
package policies

import (
	"embed"
	"io/fs"
	"maps"
	"slices"
	"strings"
)

// Prefix stands before the files of a pack where a reason names its rule:
// builtin:workspace/workspace.rego:51 is no file of the reader's folder.
const Prefix = "builtin:"

var (
	//go:embed workspace/*.rego
	workspace embed.FS
	//go:embed readonly/*.rego workspace/paths.rego
	readOnly embed.FS
	//go:embed askall/*.rego workspace/paths.rego
	askAll embed.FS
	//go:embed flow/*.rego
	flow embed.FS
	//go:embed given/*.rego
	given embed.FS
	//go:embed untrusted/*.rego
	untrusted embed.FS
	//go:embed lib/*.rego
	lib embed.FS
)

// Pack returns a pack by its name, such as workspace.
func Pack(name string) (pack fs.FS, ok bool) {
	pack, ok = packs()[name]
	return pack, ok
}

// Names lists the packs by name. Lib is none of them: it decides nothing, and is
// part of each policy that refers to it.
func Names() []string { return slices.Sorted(maps.Keys(packs())) }

func packs() map[string]fs.FS {
	return map[string]fs.FS{
		"workspace": workspace, "readonly": readOnly, "askall": askAll, "flow": flow, "given": given, "untrusted": untrusted,
	}
}

// Of returns the pack that a place is in, such as workspace for
// builtin:workspace/workspace.rego:51, and the place inside a copy of that pack.
// It returns ok false for a place that is in no pack.
func Of(at string) (name, inside string, ok bool) {
	path, builtin := strings.CutPrefix(at, Prefix)
	name, inside, _ = strings.Cut(path, "/")
	if _, known := Pack(name); !builtin || !known {
		return "", "", false
	}
	return name, inside, true
}

// Workspace returns the pack that holds when no policy is given: the root
// workspace may be read, and changed in ways that can be taken back; programs in
// the sandbox may change .git, and a person is asked about what makes git run code
// later; .git for other tools and files that usually hold secrets are out of reach;
// a person is asked about everything with effects that undo does not cover, and, once
// content was read that others wrote, about pure calls that go where the model says;
// the rest is denied.
func Workspace() fs.FS { return workspace }

// ReadOnly returns the pack under which an agent may look at the root workspace
// and do nothing else; nobody is asked about anything.
func ReadOnly() fs.FS { return readOnly }

// AskAll returns the pack under which a person approves every step.
func AskAll() fs.FS { return askAll }

// Flow returns the pack that keeps private data from leaving once content was
// read that others wrote. It allows nothing: load it beside another.
func Flow() fs.FS { return flow }

// Given returns the pack that lets calls go only to URLs that the model was given,
// by whoever is behind the session or by a result that did not merely repeat what a
// call had named. It allows nothing: load it beside another.
func Given() fs.FS { return given }

// Untrusted returns the pack under which a person approves each effect of a session that
// read content which others wrote. It allows nothing: load it beside another.
func Untrusted() fs.FS { return untrusted }

// Lib returns words for rules of one's own, package remit.lib: paths, hosts,
// roles, arguments, counts and times. It has no rule that decides.
func Lib() fs.FS { return lib }
