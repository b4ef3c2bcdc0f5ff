package console

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/internal/callview"
	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/effect"
)

// maxReports limits the reports that a console keeps for its pages.
const maxReports = 100

// planPage is what a revert would do.
type planPage struct {
	ID      string
	Parts   []planPart
	Files   []fileChoice
	Some    []string // the chosen files; empty: all
	Cascade bool
	Force   bool
	Digest  string
	Nothing bool // nothing would be done
	Changed bool // the plan is another one than the person saw
	Works   bool // a prompt of it still runs
	Left    int  // resources that would stay
	Can     struct{ Cascade, Force bool }
	Command string
}

type planPart struct {
	Txn, State string
	Items      []itemLine
	Dependents []revert.Dependent
	Contacted  []string
}

// itemLine is a resource of a plan or a report.
type itemLine struct {
	Word, Kind     string
	Resource       string
	Why            string
	Call, Tool     string
	Txn            string // of another transaction
	Forced, Merged bool
	Overlaps       []effect.Overlap
}

type fileChoice struct {
	Resource string
	Chosen   bool
}

// selection is what a form or an address selects to revert.
type selection struct {
	id        string
	resources []string
	cascade   bool
	force     bool
}

func selectionOf(v url.Values) selection {
	return selection{id: idOf(v), resources: v["file"], cascade: v.Get("cascade") == "1", force: v.Get("force") == "1"}
}

func (s selection) address() string {
	v := url.Values{"id": {s.id}, "file": s.resources}
	if s.cascade {
		v.Set("cascade", "1")
	}
	if s.force {
		v.Set("force", "1")
	}
	return "/revert?" + v.Encode()
}

// parts returns the transactions or the call that an ID selects, newest first.
func (c *Console) parts(ctx context.Context, id string) ([]string, error) {
	j := c.Runtime.Journal()
	if _, err := revert.TxnOf(ctx, j, id); err == nil {
		return []string{id}, nil
	}
	if _, err := revert.LoadOpening(ctx, j, id); err == nil {
		return []string{id}, nil
	}
	all, err := revert.FindPrompt(ctx, j, id)
	if err == nil && len(all) == 0 {
		err = &problem{http.StatusNotFound, "The journal has no such call, transaction or prompt", id}
	}
	return all, err
}

func (c *Console) options(s selection) revert.Options {
	return revert.Options{Resources: s.resources, Cascade: s.cascade, Force: s.force, By: c.By, Overlaps: true}
}

// preview returns the plan of a selection: the reports of its parts, and a
// digest of them. It leaves out a part that only waits for an approval.
func (c *Console) preview(ctx context.Context, s selection) (ids []string, reps []revert.Report, digest string, err error) {
	ids, err = c.parts(ctx, s.id)
	if err != nil {
		return nil, nil, "", err
	}
	var kept []string
	for _, id := range ids {
		rep, err := c.Runtime.Preview(ctx, id, c.options(s))
		if errors.Is(err, revert.ErrInFlight) && len(ids) > 1 {
			continue // it still works, or waits
		}
		if err != nil {
			return nil, nil, "", err
		}
		kept, reps = append(kept, id), append(reps, rep.PerResource())
	}
	text, err := json.Marshal(struct {
		IDs  []string
		Reps []revert.Report
	}{kept, reps})
	return kept, reps, string(canon.SumBytes(text)), err
}

func (c *Console) plan(r *http.Request) (string, page, error) {
	s := selectionOf(r.URL.Query())
	d, err := c.planOf(r.Context(), s)
	d.Changed = r.URL.Query().Get("changed") == "1"
	return "plan", page{Title: "Take back: the plan", Place: "timeline", Data: d}, err
}

func (c *Console) planOf(ctx context.Context, s selection) (d planPage, err error) {
	d = planPage{ID: s.id, Some: s.resources, Cascade: s.cascade, Force: s.force}
	if d.Works, err = c.works(ctx, s.id); err != nil || d.Works {
		return d, err
	}
	_, reps, digest, err := c.preview(ctx, s)
	if err != nil {
		return d, err
	}
	d.Digest, d.Nothing = digest, true
	for _, rep := range reps {
		part := planPart{Txn: rep.Txn, State: string(rep.State), Dependents: rep.Dependents, Contacted: rep.Contacted}
		for _, i := range rep.Items {
			part.Items = append(part.Items, itemOf(i, true))
			d.Nothing = d.Nothing && !i.Outcome.Applies()
			d.Can.Cascade = d.Can.Cascade || strings.HasSuffix(i.Why, "with cascade")
		}
		d.Left += len(rep.NotReverted())
		d.Parts = append(d.Parts, part)
	}
	if d.Files, err = c.choices(ctx, s); err != nil {
		return d, err
	}
	if !s.force && d.Left > 0 {
		forced := s
		forced.force = true
		if _, over, _, err := c.preview(ctx, forced); err == nil {
			left := 0
			for _, rep := range over {
				left += len(rep.NotReverted())
			}
			d.Can.Force = left < d.Left
		}
	}
	if c.Hint != nil {
		d.Command = c.Hint("revert", s.id)
	}
	return d, nil
}

// works reports whether a transaction of the selection belongs to a running
// process, and a resident process of coding agents could end it.
func (c *Console) works(ctx context.Context, id string) (bool, error) {
	ids, err := c.parts(ctx, id)
	if err != nil || c.EndPrompts == nil {
		return false, err
	}
	for _, one := range ids {
		if txn, err := revert.TxnOf(ctx, c.Runtime.Journal(), one); err == nil {
			one = txn
		}
		t, err := c.Runtime.Load(ctx, one)
		if err != nil {
			return false, err
		}
		if callview.AtWork(ctx, c.Runtime.Journal(), t) {
			return true, nil
		}
	}
	return false, nil
}

// choices are the resources that a person can select, of the plan for all.
func (c *Console) choices(ctx context.Context, s selection) (all []fileChoice, err error) {
	whole := s
	whole.resources = nil
	_, reps, _, err := c.preview(ctx, whole)
	if err != nil {
		return nil, err
	}
	seen := map[string]bool{}
	for _, rep := range reps {
		for _, i := range rep.Items {
			if i.Resource != "" && !seen[i.Resource] && !strings.HasPrefix(i.Resource, "tool://") {
				seen[i.Resource] = true
				all = append(all, fileChoice{i.Resource, len(s.resources) == 0 || slices.Contains(s.resources, i.Resource)})
			}
		}
	}
	return all, nil
}

func outcomeWords(o effect.Outcome) string { return callview.RevertOutcome(o) }

func itemOf(i revert.ResourceResult, preview bool) itemLine {
	l := itemLine{
		Word: callview.RevertOutcome(i.Outcome), Kind: "good", Resource: i.Resource, Why: i.Why, Call: i.Call, Tool: i.Tool, Txn: i.Txn,
		Forced: i.Forced, Merged: i.Outcome == effect.Merged, Overlaps: i.Overlaps,
	}
	if !i.Outcome.Clean() {
		l.Kind = "bad"
	}
	switch {
	case i.Action == revert.ActionDrop:
		l.Word = "drop"
	case i.Outcome == effect.Restored:
		l.Word = restoring(i.Action)
	case i.Outcome == effect.Merged:
		l.Word = "merge"
	default:
		return l
	}
	if !preview {
		l.Word = map[string]string{"drop": "dropped", "merge": "merged"}[l.Word]
		if l.Word == "" {
			l.Word = restoring(i.Action) + "d"
		}
	}
	return l
}

// restoring returns the verb for restoring a resource.
func restoring(does string) string {
	switch does {
	case "delete":
		return "delete"
	case "create", "mkdir":
		return "recreate"
	default:
		return "restore"
	}
}

// reportPage is what a revert or a redo did.
type reportPage struct {
	Redo    bool
	Parts   []reportPart
	Left    int
	Failure string // why it ended before all parts were done
}

type reportPart struct {
	planPart
	Again string // ID that the redo names; empty: there is none
}

type reports struct {
	mu   sync.Mutex // never held across a wait
	byID map[string]reportPage
	next int
}

func (r *reports) add(p reportPage) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.next++
	delete(r.byID, strconv.Itoa(r.next-maxReports))
	r.byID[strconv.Itoa(r.next)] = p
	return strconv.Itoa(r.next)
}

func (r *reports) get(id string) (reportPage, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p, ok := r.byID[id]
	return p, ok
}

// revert does what the form says, if the plan is still the one that the person
// saw.
func (c *Console) revert(r *http.Request) (string, error) {
	ctx, s := context.WithoutCancel(r.Context()), selectionOf(r.PostForm) // a browser that goes away interrupts no revert
	ids, _, digest, err := c.preview(ctx, s)
	if err != nil {
		return "", err
	}
	if digest != r.PostForm.Get("plan") {
		return s.address() + "&changed=1", nil
	}
	p := reportPage{}
	for _, id := range ids {
		rep, err := c.Runtime.Revert(ctx, id, c.options(s))
		if err != nil && !errors.Is(err, agent.ErrPartialRevert) {
			if len(p.Parts) == 0 {
				return "", err
			}
			p.Failure = err.Error()
			break
		}
		p.add(rep)
	}
	return "/report?n=" + c.reports.add(p), nil
}

func (p *reportPage) add(rep revert.Report) {
	rep = rep.PerResource()
	part := reportPart{planPart: planPart{Txn: rep.Txn, State: string(rep.State), Contacted: rep.Contacted}, Again: rep.RevertTxn}
	for _, i := range rep.Items {
		part.Items = append(part.Items, itemOf(i, false))
	}
	if part.Again == "" && len(part.Items) > 0 && rep.State != revert.TxnOpen {
		part.Again = rep.Txn // an abort has no transaction of its own
	}
	p.Left += len(rep.NotReverted())
	p.Parts = append(p.Parts, part)
}

func (c *Console) report(r *http.Request) (string, page, error) {
	p, ok := c.reports.get(r.URL.Query().Get("n"))
	if !ok {
		return "", page{}, &problem{http.StatusNotFound, "There is no such report", "The console keeps the newest reports while it runs. The timeline has all reverts."}
	}
	title := "Taken back"
	if p.Redo {
		title = "Redone"
	}
	return "report", page{Title: title, Place: "timeline", Data: p}, nil
}

type redoPage struct {
	ID, Txn string
	Changes []callview.ChangeLine
}

// redoPlan shows what a redo brings back: the changes of the revert.
func (c *Console) redoPlan(r *http.Request) (string, page, error) {
	ctx, id := r.Context(), idOf(r.URL.Query())
	t, err := c.Runtime.Load(ctx, id)
	if err != nil {
		return "", page{}, err
	}
	d := redoPage{ID: id, Txn: t.ID}
	if t.Reverts != "" {
		d.Txn = t.Reverts
	}
	of, err := c.Runtime.Load(ctx, d.Txn)
	if err != nil {
		return "", page{}, err
	}
	seen := map[string]bool{}
	for _, call := range of.Calls {
		for _, ch := range call.Changes {
			if call.Reversal != nil && !seen[ch.Resource] {
				seen[ch.Resource] = true
				d.Changes = append(d.Changes, callview.ChangeLine{Verb: callview.ChangeVerb(ch.Kind), Resource: ch.Resource})
			}
		}
	}
	return "redo", page{Title: "Redo", Place: "timeline", Data: d}, nil
}

func (c *Console) redo(r *http.Request) (string, error) {
	rep, err := c.Runtime.Redo(context.WithoutCancel(r.Context()), idOf(r.PostForm), c.By)
	if err != nil && !errors.Is(err, agent.ErrPartialRevert) {
		return "", err
	}
	p := reportPage{Redo: true}
	p.add(rep)
	p.Parts[0].Again = ""
	return "/report?n=" + c.reports.add(p), nil
}

// endPrompts ends the prompts that still run, and leads back to the plan.
func (c *Console) endPrompts(r *http.Request) (string, error) {
	if c.EndPrompts == nil {
		return "", &problem{http.StatusNotFound, "There is nothing to end", ""}
	}
	if err := c.EndPrompts(context.WithoutCancel(r.Context())); err != nil {
		return "", err
	}
	return selectionOf(r.PostForm).address(), nil
}
