// Package policies holds the policies that remit includes, only as files.
// Package perm/rego makes an engine of them. Each pack has its tests beside it.
package policies

import (
	"embed"
	"io/fs"
	"maps"
	"slices"
	"strings"
)

// Prefix is the prefix of the files of a pack in the position of a reason. For
// example, builtin:workspace/workspace.rego:51 is not a file of the user's
// folder.
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
	//go:embed user_provided/*.rego
	userProvided embed.FS
	//go:embed untrusted/*.rego
	untrusted embed.FS
	//go:embed provenance/*.rego untrusted/facts.rego
	provenance embed.FS
	//go:embed commit-gate/*.rego provenance/valuefacts.rego provenance/provenance.rego untrusted/facts.rego
	commitGate embed.FS
	//go:embed coding-agent/*.rego workspace/paths.rego workspace/clientfacts.rego workspace/gitfacts.rego
	codingAgent embed.FS
	//go:embed lib/*.rego
	lib embed.FS
)

// Pack returns a pack by its name, such as workspace.
func Pack(name string) (pack fs.FS, ok bool) {
	pack, ok = packs()[name]
	return pack, ok
}

// Names returns the names of the packs, sorted. Lib is not a pack: it decides
// nothing, and belongs to each policy that refers to it.
func Names() []string { return slices.Sorted(maps.Keys(packs())) }

func packs() map[string]fs.FS {
	return map[string]fs.FS{
		"workspace": workspace, "readonly": readOnly, "askall": askAll, "flow": flow, "user_provided": userProvided, "untrusted": untrusted,
		"coding-agent": codingAgent, "provenance": provenance, "commit-gate": commitGate,
	}
}

// ParseName returns the pack of a position, such as workspace for
// builtin:workspace/workspace.rego:51, and the position inside a copy of that
// pack. It returns ok false for a position outside of all packs.
func ParseName(at string) (name, inside string, ok bool) {
	path, builtin := strings.CutPrefix(at, Prefix)
	name, inside, _ = strings.Cut(path, "/")
	if _, known := Pack(name); !builtin || !known {
		return "", "", false
	}
	return name, inside, true
}

// Workspace returns the default pack. It allows reads of the root workspace,
// and changes that can be reverted. Programs in the sandbox may change .git,
// and a change that makes git run code later needs approval. It denies other
// tools .git, and denies files that usually hold secrets. Effects that a revert
// does not cover need approval. After the session has read untrusted content,
// so do pure calls to destinations that the model chooses. It denies everything
// else.
func Workspace() fs.FS { return workspace }

// ReadOnly returns the pack that only allows reads of the root workspace. It
// never requires an approval.
func ReadOnly() fs.FS { return readOnly }

// AskAll returns the pack that requires an approval for every step.
func AskAll() fs.FS { return askAll }

// CodingAgent returns the pack for the own tools of coding agents (package
// hooks): reads, changes that a revert covers, and commands in the sandbox run
// without approval. Files of package remit.coding_agent beside it extend its
// sets of hosts, tools and folders.
func CodingAgent() fs.FS { return codingAgent }

// Flow returns the pack that keeps private data from leaving after the session
// has read untrusted content. It allows nothing: load it beside another pack.
func Flow() fs.FS { return flow }

// UserProvided returns the pack that restricts calls to user-provided URLs. These
// include URLs in a result that does not merely repeat what a call had named.
// It allows nothing: load it beside another pack.
func UserProvided() fs.FS { return userProvided }

// Untrusted returns the pack that requires an approval for each effect of a
// session that has read untrusted content. It allows nothing: load it beside
// another pack.
func Untrusted() fs.FS { return untrusted }

// Provenance returns the pack for sessions that read untrusted content: an effect
// then runs without approval only if the person, the configuration or a trusted
// part of a result named what it acts on. It allows nothing: load it beside
// another pack.
func Provenance() fs.FS { return provenance }

// CommitGate returns the pack for sessions that read untrusted content:
// reversible effects run without approval, and a person looks at all of them
// once, before the commit. It has the rules of Provenance for other effects. It
// allows nothing: load it beside another pack.
func CommitGate() fs.FS { return commitGate }

// Lib returns helpers for custom rules, package remit.lib: paths, hosts, roles,
// arguments, counts and times. None of its rules decides.
func Lib() fs.FS { return lib }
