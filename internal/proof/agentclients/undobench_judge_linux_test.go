package agentclients_test

import (
	"slices"
	"strings"

	"github.com/remit-dev/remit/internal/proof/treecheck"
)

// What a tool said about an undo.
const (
	claimUndone = "undone"
	claimPartly = "partly"
	claimNone   = "not undone"
)

// The verdicts on an undo.
const (
	exact      = "exact"
	bytesRight = "bytes right" // modes, times, links or attributes differ
	wrongUndo  = "wrong"       // said undone and was not, or destroyed bytes that were not the step's
	notUndone  = "not restored"
	noEffect   = "no effect"
)

// scene is a project at one moment.
type scene struct {
	tree       treecheck.Tree
	repository string
}

func (w undoSpace) look() scene {
	repository := w.repository()
	tree, err := treecheck.Capture(w.dir)
	must(err)
	tree.Entries = slices.DeleteFunc(tree.Entries, func(e treecheck.Entry) bool { return e.Path == ".git" || strings.HasPrefix(e.Path, ".git/") })
	return scene{tree, repository}
}

// verdict judges an undo. It knows the project before the step, after it with
// the person's changes, and after the undo; and the same project in which the
// person made their changes and no agent worked.
func verdict(before, worked, undone, want scene, said string) (is string, wrong []string) {
	theirs := changedPaths(before, want)
	step := changedPaths(want, worked)
	bytes, foreign := false, false
	for _, d := range differences(want, undone) {
		if d.Field == treecheck.Mtime && theirs[d.Path] && step[d.Path] {
			continue // a file with the work of both has no earlier time
		}
		wrong = append(wrong, d.String())
		if ofBytes(d) {
			bytes = true
			foreign = foreign || !step[d.Path] || theirs[d.Path] && !sameAt(worked, undone, d.Path)
		}
	}
	switch {
	case len(wrong) == 0:
		return exact, nil
	case said != claimUndone && len(differences(worked, undone)) == 0:
		return notUndone, wrong
	case len(differences(worked, undone)) == 0:
		return wrongUndo, wrong // it did nothing, and says that it did
	case !bytes:
		return bytesRight, wrong
	case foreign || said == claimUndone:
		return wrongUndo, wrong
	}
	return notUndone, wrong
}

// differences leaves out the times of folders.
func differences(want, got scene) []treecheck.Difference {
	all := treecheck.Compare(want.tree, got.tree)
	all = slices.DeleteFunc(all, func(d treecheck.Difference) bool { return d.Field == treecheck.DirMtime })
	if want.repository != got.repository {
		all = append(all, treecheck.Difference{Path: ".git", Field: treecheck.Content, Want: want.repository, Got: got.repository})
	}
	return all
}

// ofBytes reports whether a difference is about what is where.
func ofBytes(d treecheck.Difference) bool {
	switch d.Field {
	case treecheck.Missing, treecheck.Extra, treecheck.Type, treecheck.Content, treecheck.Target:
		return true
	default:
		return false
	}
}

// changedPaths returns the paths with other bytes.
func changedPaths(a, b scene) map[string]bool {
	all := map[string]bool{}
	for _, d := range differences(a, b) {
		if ofBytes(d) {
			all[d.Path] = true
		}
	}
	return all
}

// sameAt reports whether two projects have the same bytes at a path.
func sameAt(a, b scene, path string) bool {
	return !slices.ContainsFunc(differences(a, b), func(d treecheck.Difference) bool { return d.Path == path && ofBytes(d) })
}
