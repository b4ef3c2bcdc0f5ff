package process

import (
	"bytes"
	"fmt"
	"io"
	"path"
	"strings"

	"github.com/remit-dev/remit/internal/sandbox"
)

// mostIndex bounds how much of a git index the search for hidden files reads.
const mostIndex = 64 << 20

// deleted finds the hidden files that a program removed from a git index. A
// file that git cannot see looks deleted, and git add -A silently records that.
func (h *runHandle) deleted(dir string, all []sandbox.OverlayEntry) (met []Restriction) {
	for _, w := range all {
		tree, ok := strings.CutSuffix("/"+w.Name, "/.git/index")
		if !ok || w.Kind != sandbox.File || len(h.view.masked) == 0 {
			continue
		}
		before := content(h.call.Config().Roots[h.view.names[dir]].Open(w.Name))
		after := content(h.open(dir, w.Name))
		for _, m := range h.view.masked {
			name, below := strings.CutPrefix("/"+m.name, tree+"/")
			if !below || m.dir != dir || tracked(before, name) <= tracked(after, name) || len(met) == mostNamed {
				continue
			}
			met = append(met, Restriction{ruleHidden, fmt.Sprintf("%q is hidden from programs by the policy, so that git took it for deleted, and the index of git no longer lists it; "+
				"to keep it in the repository, before a commit: git reset -- %s", path.Join(m.root, m.name), name)})
		}
	}
	return met
}

// content reads a file. An unreadable file is empty.
func content[F io.ReadCloser](f F, err error) []byte {
	if err != nil {
		return nil
	}
	defer func() { _ = f.Close() }()
	data, err := io.ReadAll(io.LimitReader(f, mostIndex))
	if err != nil {
		return nil
	}
	return data
}

// tracked counts the entries of a git index for a file, or for the files in a
// folder. An entry holds the length of its name before the name. Version 4
// compresses names, so the count is 0.
func tracked(index []byte, name string) int {
	return bytes.Count(index, append(append([]byte{byte(len(name))}, name...), 0)) + bytes.Count(index, []byte(name+"/"))
}
