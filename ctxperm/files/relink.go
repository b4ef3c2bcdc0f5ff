package files

import (
	"context"
	"fmt"

	"github.com/remit-dev/remit/revert/effect"
)

// group holds the plans of files that share an inode with others, by name.
type group map[rootPath]*plan

func sharing(plans []*plan) group {
	by := group{}
	for _, p := range plans {
		if p.root != nil {
			by[p.at] = p
		}
	}
	return by
}

// leads returns the plan of the name that p shares its file with, or nil if
// that name does not change.
func (g group) leads(p *plan) *plan {
	if twin := p.was.hardLink(); twin != "" {
		return g[rootPath{p.root, twin}]
	}
	return nil
}

// depth returns the number of names before one, each to be made as a link of
// the next.
func (g group) depth(p *plan) (n int) {
	for p = g.leads(p); p != nil && n < len(g); p = g.leads(p) {
		n++
	}
	return n
}

// relink plans names that are unchanged except for the file that they share.
// Such a name becomes a link to its leader again.
func (g group) relink(ctx context.Context) {
	for range len(g) { // a restored name may itself lead others
		again := false
		for _, p := range g {
			again = g.joins(ctx, p) || again
		}
		if !again {
			return
		}
	}
}

// joins reports whether a name must be restored only to share its file again.
func (g group) joins(ctx context.Context, p *plan) bool {
	twin := p.was.hardLink()
	if twin == "" || p.step.Plan != effect.Already || p.now.Type != typeFile {
		return false
	}
	if lead := g.leads(p); lead != nil && lead.restores() {
		p.step = effect.Step{Of: p.numbers(), Plan: effect.Restored}
		return true
	}
	other, err := p.look(ctx, twin, hashing)
	//mutant:none a name that shares its file already is linked again, to the same file
	if err != nil || p.now.same(other.info) {
		return false
	}
	//mutant:none what becomes a link is compared again when it is made, and looked at after its step
	if !other.Token().Same(p.pre()) || !other.info.Mtime.Equal(p.was.time()) {
		p.no(effect.Conflict, apart(twin))
		return false
	}
	p.step = effect.Step{Of: p.numbers(), Plan: effect.Restored}
	return true
}

// apart states that a link is not restored.
func apart(twin string) string {
	return fmt.Sprintf("it is a file of its own: %s, which was another name of it, is no longer what it was; look at both, and link them by hand", twin)
}

// outside states that some links are not restored.
func outside(n int) string {
	return fmt.Sprintf("it has other names outside of the root (%d), or where remit may not look, and is no longer the same file as those", n)
}

// linked checks the links of a restored file.
func (t *planStep) linked(ctx context.Context) (effect.Outcome, string) {
	will := t.inv.Will
	if will == nil || will.Type != typeFile {
		return effect.Restored, ""
	}
	twin, why := will.hardLink(), ""
	if will.Elsewhere > 0 {
		why = outside(will.Elsewhere)
	}
	if twin == "" {
		return effect.Restored, why
	}
	mine, err := t.swap.lstat(ctx, t.swap.target)
	if err == nil {
		other, lerr := t.swap.lstat(ctx, twin)
		if lerr == nil && other.Inode == mine.Inode && other.Device == mine.Device {
			return effect.Restored, why
		}
	}
	return effect.Failed, "content, owner, bits, attributes and time are back, but " + apart(twin)
}
