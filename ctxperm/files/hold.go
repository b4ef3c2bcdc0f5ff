package files

import (
	"context"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/remit-dev/remit/internal/disk"
	"github.com/remit-dev/remit/revert/effect"
)

// hold describes how a folder changes its version while entries below it change
// too. It removes access before those changes and adds access after them. In
// between, the folder has the held version.
type hold struct {
	held    Version
	narrows bool // the held version differs from the version before
	opens   bool // the held version differs from the version after
}

// The places of a change in the order of a change set.
const (
	placeFirst  = iota // folders that only let in less
	placeMiddle        // everything else
	placeLast          // folders that let in more, after everything below them has its final state
)

// holding returns the held version of a folder. With it, others can do no more
// than with each of the two versions. It returns nil if the path is not a
// folder before and after. The held version depends only on the two versions
// and this process, so that recovery recognizes a held folder.
func holding(was, will Version, me disk.Owner) *hold {
	switch {
	case was.Type != typeDir || will.Type != typeDir:
		return nil
	case holds(will, was, me):
		return &hold{held: will, narrows: true}
	case holds(was, will, me):
		return &hold{held: was, opens: true}
	default:
		return &hold{held: was.closed(will, me), narrows: true, opens: true}
	}
}

func (h *hold) place() int {
	switch {
	case h == nil:
		return placeMiddle
	case h.opens:
		return placeLast
	default:
		return placeFirst
	}
}

// between reports whether the folder temporarily has a version that it has
// neither before nor after.
func (h *hold) between() bool { return h != nil && h.narrows && h.opens }

// holds reports whether one version of a folder lets others do no more than
// another version. It also must let its owner do no less, if that is this
// process, which works there.
func holds(a, b Version, me disk.Owner) bool {
	if a.Perm&fs.ModeSticky == 0 && b.Perm&fs.ModeSticky != 0 && a.Perm&0o022 != 0 {
		return false
	}
	return a.admits(b, me) && (a.Owner.User != me.User || b.Perm&^a.Perm&0o700 == 0)
}

// admits reports whether a version gives no one but this process a right that
// another version does not give. It is false if the answer is not simple, such
// as between lists that name other users.
func (v Version) admits(other Version, me disk.Owner) bool {
	bits := 0o777 | asProgram
	if v.Owner.User == me.User {
		bits &^= 0o700
	}
	if v.Type == typeDir {
		bits &^= asProgram // these bits give no access
	}
	return v.Owner == other.Owner && v.Perm&^other.Perm&bits == 0 &&
		slices.EqualFunc(rights(v), rights(other), func(a, b aclEntry) bool {
			return a.tag == b.tag && a.id == b.id && a.perm&^b.perm == 0
		})
}

// rights returns the entries of a list that give others rights, limited by its
// mask.
func rights(v Version) []aclEntry {
	all := parseACL(v.Xattrs[disk.XattrAccess])
	_, mask, _ := classes(all)
	var out []aclEntry
	for _, e := range all {
		if e.tag == aclOwner || e.tag == aclMask {
			continue
		}
		if e.tag != aclOther && mask != nil {
			e.perm &= mask.perm
		}
		out = append(out, e)
	}
	return out
}

// closed returns a version of a folder that admits only those whom both
// versions admit. If that is not simple to determine, it admits only its owner.
// If the owners differ too, it belongs to this process, so that neither owner
// can open it.
func (v Version) closed(other Version, me disk.Owner) Version {
	own, shared := v.Perm&other.Perm&0o700, v.Perm&other.Perm&0o077
	if v.Owner.User == me.User {
		own = (v.Perm | other.Perm) & 0o700
	}
	_, listed := v.Xattrs[disk.XattrAccess]
	_, lists := other.Xattrs[disk.XattrAccess]
	if v.Owner != other.Owner || listed || lists {
		shared = 0
	}
	if v.Owner.User != other.Owner.User {
		own, v.Owner.User = 0o700, me.User
	}
	return v.rebit(v.Perm&fs.ModeSetgid | (v.Perm|other.Perm)&fs.ModeSticky | own | shared)
}

// narrow sets the held version of a folder if it still has the version before.
func (w *swap) narrow(ctx context.Context) error {
	now, err := w.look(ctx, w.target, hashing)
	if err != nil {
		return err
	}
	if err := w.setDirVersion(ctx, now.Version, w.hold.held); err != nil {
		return err
	}
	w.from = w.hold.held.Token()
	return nil
}

// exposes reports whether the current file lets others do more than the
// previous one, if its folder lets them in again.
func (r *record) exposes(now Version, me disk.Owner) bool {
	if now.Type == "" || now.Type == typeLink {
		return false
	}
	was, err := r.version()
	if err != nil {
		return true
	}
	if was.Type != now.Type {
		was = Version{Type: now.Type, Owner: now.Owner} // admits only this process
	}
	return !now.admits(was, me)
}

// stillBelow states why a folder does not let others in again.
func stillBelow(name string) string {
	return fmt.Sprintf("it would give others access to %q, which was not restored; check that path, then revert the call again", name)
}

// opens skips folders that would let others reach content that is not restored.
func (p *plan) opens(plans []*plan) {
	if !p.restores() || p.was == nil {
		return
	}
	was, err := p.was.version()
	if h := holding(p.now.Version, was, p.root.Self().Owner); err != nil || h.place() != placeLast {
		return
	}
	for _, q := range plans {
		if q.step.Plan.Clean() || q.at.root != p.root && q.at.root != nil || !strings.HasPrefix(q.resource, p.resource+"/") {
			continue
		}
		if q.root == nil || q.was.exposes(q.now.Version, p.root.Self().Owner) {
			p.no(effect.Conflict, stillBelow(q.resource))
			return
		}
	}
}

// withheld reports whether a folder has the held version of a change, or of its
// revert.
func (p *plan) withheld() bool {
	if p.now.Type != typeDir {
		return false
	}
	var versions []Version
	for _, c := range p.changes {
		inv, err := readInverse(c)
		if err != nil {
			continue
		}
		for _, r := range []*record{inv.Was, inv.Will} {
			if v, err := r.version(); err == nil {
				versions = append(versions, v)
			}
		}
	}
	for _, a := range versions {
		for _, b := range versions {
			h := holding(a, b, p.root.Self().Owner)
			//mutant:token
			if h.between() && h.held.Token().Same(p.now.Token()) {
				return true
			}
		}
	}
	return false
}
