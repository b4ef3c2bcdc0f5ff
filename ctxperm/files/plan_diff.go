package files

import "fmt"

// unchanged ends the reason of a conflict.
const unchanged = "; remit did not change it: check it, and restore or remove it by hand"

// difference describes the current version, compared with the one that the call
// left, and what to do.
func (p *plan) difference() string {
	last := p.changes[len(p.changes)-1]
	inv, err := readInverse(last)
	if err != nil {
		return "it is not what the call left" + unchanged
	}
	return p.found(inv.Will) + unchanged
}

// found compares with a record of the version that the call left.
func (p *plan) found(left *record) string {
	now := p.now.Version
	switch {
	case left == nil && now.Type == typeDir:
		return "a directory was made where the call removed something"
	case left == nil:
		return "another process created it again after the call"
	case now.Type == "":
		return "it was deleted after the call"
	case now.Type != left.Type:
		return fmt.Sprintf("it is now of type %s, the call left a %s", now.Type, left.Type)
	case now.Content != left.Content:
		return "another process changed it after the call: its content differs"
	case now.Target != string(left.Target):
		return "another process changed it after the call: the link has another target"
	case left.Perm != "" && octal(now.Perm) != left.Perm:
		return fmt.Sprintf("its permission bits were changed after the call, from %s to %s", left.Perm, octal(now.Perm))
	case left.Owner != now.Owner.String():
		return fmt.Sprintf("its owner or group was changed after the call, from %s to %s", left.Owner, now.Owner)
	default:
		return "another process changed its attributes after the call"
	}
}
