package console

import (
	"context"
	"net/http"
	"sync"
	"time"
)

// Check is what a check of the machine, the roots or the journal found.
type Check struct {
	Where, Name string
	State       string // ok, weaker, failed
	What        string
	Fix         string // empty for ok
}

// diagnosis has the newest checks. They can take seconds, and try what a page
// that is only looked at must not do, such as making a folder.
type diagnosis struct {
	running sync.Mutex // held while checks run

	mu     sync.Mutex // never held across a wait
	at     time.Time
	checks []Check
}

type healthPage struct {
	CanCheck bool
	At       string // of the checks; empty: none ran
	Groups   []checkGroup
	Weaker   int
	Failed   int

	Entries    int64 // position of the newest record
	Open, Gone int   // transactions, and those without a process
	Grants     int
	Visits     []visitLine
	Tokens     int // addresses that were printed and not used
	Commands   []string
}

type checkGroup struct {
	Where  string
	Checks []Check
}

// Kind returns the class of the style of a check.
func (c Check) Kind() string {
	switch c.State {
	case "ok":
		return "good"
	case "weaker":
		return "doubt"
	default:
		return "bad"
	}
}

type visitLine struct {
	Until string
	Own   bool
}

func (c *Console) health(r *http.Request) (string, page, error) {
	ctx, j := r.Context(), c.Runtime.Journal()
	d := healthPage{CanCheck: c.Diagnose != nil}
	var err error
	if d.Entries, err = c.newest(ctx); err != nil {
		return "", page{}, err
	}
	open, err := j.Unfinished(ctx)
	if err != nil {
		return "", page{}, err
	}
	for _, o := range open {
		d.Open++
		if alive, err := j.Alive(ctx, o.Owner); err == nil && !alive {
			d.Gone++
		}
	}
	grants, err := c.Runtime.Grants(ctx)
	if err != nil {
		return "", page{}, err
	}
	for _, g := range grants {
		if g.State == "standing" {
			d.Grants++
		}
	}
	d.Tokens, d.Visits = c.access.list(visitOf(r))
	c.lastChecks(&d)
	if c.Hint != nil {
		d.Commands = []string{c.Hint("doctor"), c.Hint("prune", "--dry-run"), c.Hint("fsck")}
	}
	return "health", page{Title: "Health", Place: "health", Data: d}, nil
}

func (c *Console) lastChecks(d *healthPage) {
	c.diagnosis.mu.Lock()
	defer c.diagnosis.mu.Unlock()
	if c.diagnosis.at.IsZero() {
		return
	}
	d.At = when(c.diagnosis.at)
	for _, found := range c.diagnosis.checks {
		switch found.State {
		case "ok":
		case "weaker":
			d.Weaker++
		default:
			d.Failed++
		}
		if n := len(d.Groups); n == 0 || d.Groups[n-1].Where != found.Where {
			d.Groups = append(d.Groups, checkGroup{Where: found.Where})
		}
		last := &d.Groups[len(d.Groups)-1]
		last.Checks = append(last.Checks, found)
	}
}

// check runs the checks. A second form waits for the first, and runs none.
func (c *Console) check(r *http.Request) (string, error) {
	if c.Diagnose == nil {
		return "", &problem{http.StatusNotFound, "This console has no checks", ""}
	}
	if !c.diagnosis.running.TryLock() {
		c.diagnosis.running.Lock()
		defer c.diagnosis.running.Unlock()
		return "/health", nil
	}
	defer c.diagnosis.running.Unlock()
	found, err := c.Diagnose(context.WithoutCancel(r.Context()))
	if err != nil {
		return "", err
	}
	c.diagnosis.mu.Lock()
	defer c.diagnosis.mu.Unlock()
	c.diagnosis.at, c.diagnosis.checks = c.Now(), found
	return "/health", nil
}

// endVisits ends the visits of all other browsers, and unused addresses.
func (c *Console) endVisits(r *http.Request) (string, error) {
	c.access.leaveOthers(visitOf(r))
	return "/health", nil
}
