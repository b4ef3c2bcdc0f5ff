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

// hold is how a folder that stays one goes from one version to another while what is below it
// changes too: what it denies to others it denies before that, and what it gives them it gives
// after that. Between the two the folder has the held version.
type hold struct {
	held    Version
	narrows bool // held is not the version before
	opens   bool // held is not the version after
}

// The places of a change in the order of a change set.
const (
	placeFirst  = iota // folders that only let in less
	placeMiddle        // everything else
	placeLast          // folders that let in more, once all below them is what it is to be
)

// holding finds the held version of a folder. Others may do no more with that version than
// with each of the two. The function returns nil for what is not a folder before and after.
// The held version depends on nothing but the two and this process, so that recovery knows a
// folder that is held.
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

// between reports whether the folder has a version for a while that it has neither before nor
// after.
func (h *hold) between() bool { return h != nil && h.narrows && h.opens }

// holds reports whether a version of a folder lets others do no more than another version,
// and lets its owner do no less, if that is this process: it works there.
func holds(a, b Version, me disk.Owner) bool {
	if a.Perm&fs.ModeSticky == 0 && b.Perm&fs.ModeSticky != 0 && a.Perm&0o022 != 0 {
		return false
	}
	return a.admits(b, me) && (a.Owner.User != me.User || b.Perm&^a.Perm&0o700 == 0)
}

// admits reports whether a version gives nobody but this process a right that another version
// does not give. It says no where it cannot tell easily, such as between lists that name
// other users.
func (v Version) admits(other Version, me disk.Owner) bool {
	bits := 0o777 | asProgram
	if v.Owner.User == me.User {
		bits &^= 0o700
	}
	if v.Type == typeDir {
		bits &^= asProgram // they let nobody in
	}
	return v.Owner == other.Owner && v.Perm&^other.Perm&bits == 0 &&
		slices.EqualFunc(rights(v), rights(other), func(a, b aclEntry) bool {
			return a.tag == b.tag && a.id == b.id && a.perm&^b.perm == 0
		})
}

// rights are the entries of a list that say what others may do, less what its mask takes.
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

// closed is a version of a folder that lets in those alone whom both versions let in, or, where
// that is not told easily, none but its owner. Where the owners differ too, it belongs to this
// process, so that neither of them can open it.
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

// narrow gives a folder its held version, if it has still the one before.
func (w *swap) narrow(ctx context.Context) error {
	now, err := w.look(ctx, w.target, hashing)
	if err != nil {
		return err
	}
	if err := w.reshape(ctx, now.Version, w.hold.held); err != nil {
		return err
	}
	w.from = w.hold.held.Token()
	return nil
}

// exposes reports whether what is there by now lets others do more than what was there, if its
// folder lets them in again.
func (r *record) exposes(now Version, me disk.Owner) bool {
	if now.Type == "" || now.Type == typeLink {
		return false
	}
	was, err := r.version()
	if err != nil {
		return true
	}
	if was.Type != now.Type {
		was = Version{Type: now.Type, Owner: now.Owner} // which lets in none but this process
	}
	return !now.admits(was, me)
}

// stillBelow says why a folder does not let others in again.
func stillBelow(name string) string {
	return fmt.Sprintf("it would let others in to %q, which is not as it was; look at that one, then take the call back again", name)
}

// opens leaves folders alone that would let others in to what does not come back.
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

// withheld reports whether a folder has a version that a change of it, or what takes that
// back, gives it for a while.
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
