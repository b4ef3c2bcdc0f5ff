package connect

import (
	"fmt"
	"os"
	"slices"
)

// Drift says what became of the hooks of a client.
type Drift struct {
	Client, Title string
	Installed     bool     // a configuration file of the client exists
	Connected     bool     // remit connect added hooks that a record still has
	Changes       []string // how its files differ from what remit connect wrote
	Failure       string   // what happens to a call whose hook fails
	FailsOpen     bool     // such a call can run
}

// Drift compares the client's hooks with the records of remit connect. The
// files of other projects are compared too. A client without hooks has a zero
// Drift.
func (c Client) Drift(p Environment) (d Drift, err error) {
	if c.guard == nil {
		return d, nil
	}
	if err := p.check(); err != nil {
		return d, err
	}
	on := c.guard(p)
	d = Drift{Client: c.name, Title: c.title, Failure: string(on), FailsOpen: on != failBlocks}
	records, err := p.records()
	if err != nil {
		return d, err
	}
	for _, r := range records {
		if r.Client != c.name || len(r.Hooks) == 0 && !r.Whole {
			continue
		}
		d.Connected = true
		if is := r.drift(); is != "" {
			d.Changes = append(d.Changes, r.Path+": "+is)
		}
	}
	for _, src := range c.files(p) {
		is, err := loadFile(src.path)
		if err != nil || is == nil {
			continue
		}
		d.Installed = true
		if off := src.switchedOff(is.text); off != "" {
			d.Changes = append(d.Changes, src.path+": "+off)
		}
	}
	slices.Sort(d.Changes)
	return d, nil
}

// drift says how a file differs from what remit connect wrote, or "".
func (r *record) drift() string {
	text, err := os.ReadFile(r.Path)
	switch {
	case os.IsNotExist(err):
		return "remit connect wrote it, and it is gone"
	case err != nil:
		return "it cannot be read: " + plain(err)
	case r.Whole && digest(text) != r.After:
		return "it is not what remit connect wrote"
	case r.Whole:
		return ""
	}
	missing := 0
	for _, h := range r.Hooks {
		if (source{hooks: []listElement{h}}).hookState(text) != HooksOn {
			missing++
		}
	}
	if missing == 0 {
		return ""
	}
	return fmt.Sprintf("%d of %d hooks are not as remit connect wrote them", missing, len(r.Hooks))
}
