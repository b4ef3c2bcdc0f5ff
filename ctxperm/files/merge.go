package files

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/internal/linemerge"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/journal"
)

// merging is a file while the changes of a call are taken out of its current
// version, newest first.
type merging struct {
	hostRoot
	path string
	keep journal.ContentStore

	now     state
	data    []byte            // content of now
	version Version           // the version so far
	content []byte            // its content
	known   map[string][]byte // contents by digest
}

// noMergeError says why a file cannot be merged. Its plan stays a conflict.
type noMergeError struct {
	why      string
	overlaps []effect.Overlap
}

func (n noMergeError) Error() string { return n.why }

// Merge plans the revert of all changes of a call to one text file that another
// process changed later. The step keeps what that process changed: it leads from
// the current version to one without what the call changed. If the current
// version has nothing of the call any more, the step is Already. If both changed
// the same lines or attributes, it is a Conflict, with these lines. The zero Step
// means that such a file is not merged.
func (s scheme) Merge(ctx context.Context, changes []effect.Change, keep journal.ContentStore) (step effect.Step, overlaps []effect.Overlap, blobs []journal.Blob, err error) {
	m := &merging{keep: keep, known: map[string][]byte{}}
	step, blobs, err = m.plan(ctx, s, changes)
	var no noMergeError
	if errors.As(err, &no) {
		if no.why == "" {
			return effect.Step{}, nil, nil, nil
		}
		return effect.Step{Plan: effect.Conflict, Why: no.why + unchanged}, no.overlaps, nil, nil
	}
	return step, nil, blobs, err
}

func (m *merging) plan(ctx context.Context, s scheme, changes []effect.Change) (step effect.Step, blobs []journal.Blob, err error) {
	resource := changes[0].Resource
	if m.hostRoot, m.path, err = s.locate(resource); err != nil {
		return step, nil, noMergeError{}
	}
	var end func()
	m.hostRoot, end = m.pin(m.path)
	defer end()
	if err := m.begin(ctx); err != nil {
		return step, nil, err
	}
	for _, c := range slices.Backward(changes) {
		if err := m.takeOut(ctx, c); err != nil {
			return step, nil, err
		}
	}
	step = effect.Step{Plan: effect.Merged, Change: effect.Change{Scheme: schemeName, Resource: resource, Pre: m.now.Token()}}
	for _, c := range changes {
		step.Of = append(step.Of, c.N)
	}
	//mutant:token
	if m.version.Token().Same(m.now.Token()) {
		step.Plan, step.Why = effect.Already, "another process changed it after the call, and left nothing of the call"
		return step, nil, nil
	}
	step.Why = "another process changed other lines or attributes after the call; they stay"
	displaced, err := m.keep.StoreContent(ctx, bytes.NewReader(m.data))
	if err != nil {
		return step, nil, fmt.Errorf("%s: %w: %w", resource, errJournal, err)
	}
	made, err := m.keep.StoreContent(ctx, bytes.NewReader(m.content))
	if err != nil {
		return step, nil, fmt.Errorf("%s: %w: %w", resource, errJournal, err)
	}
	will := m.version.record()
	ref := made.Ref()
	will.Kept = &ref
	step.Change, err = change(resource, newStage(s.host), m.now.record(&displaced), will, m.now.Token(), m.version.Token(), nil)
	step.Change.N = changes[0].N
	return step, []journal.Blob{displaced, made}, err
}

// begin reads the current version.
func (m *merging) begin(ctx context.Context) error {
	if m.straight(ctx, m.path) != nil {
		return noMergeError{}
	}
	now, err := m.look(ctx, m.path, func(r io.Reader) (digest string, err error) {
		m.data, err = io.ReadAll(io.LimitReader(atOnce(r), maxMergeBytes+1))
		return string(canon.SumBytes(m.data)), err
	})
	if err != nil || now.Type != typeFile || now.info.Links > 1 || len(m.data) > maxMergeBytes || !linemerge.Text(m.data) {
		return noMergeError{} // the plan has found the reason
	}
	m.now, m.version, m.content = now, now.Version, m.data
	m.known[now.Content] = m.data
	return nil
}

// takeOut removes one change from the version so far.
func (m *merging) takeOut(ctx context.Context, c effect.Change) error {
	inv, err := readInverse(c)
	if err != nil {
		return noMergeError{}
	}
	//mutant:none without it the merge of equal versions changes nothing
	if c.Pre.Same(c.Post) {
		return nil // it had no effect, or changed only the time
	}
	was, err := fileBefore(inv.Was, c.Pre)
	if err != nil {
		return err
	}
	left, err := fileBefore(inv.Will, c.Post)
	if err != nil {
		return err
	}
	if err := m.attributes(left, was); err != nil {
		return err
	}
	if left.Content == was.Content {
		return nil
	}
	before, err := m.stored(ctx, inv.Was)
	if err != nil {
		return err
	}
	after, err := m.left(ctx, inv, before)
	if err != nil {
		return err
	}
	if !linemerge.Text(before) || !linemerge.Text(after) {
		return noMergeError{}
	}
	merged, overlaps, err := linemerge.Merge(after, m.content, before)
	if err != nil {
		return noMergeError{why: "another process changed it after the call, and " + err.Error()}
	}
	if len(overlaps) > 0 {
		return noMergeError{overlapText(overlaps), reported(overlaps)}
	}
	if len(merged) > maxMergeBytes {
		return noMergeError{}
	}
	m.content, m.version.Content = merged, string(canon.SumBytes(merged))
	m.known[m.version.Content] = merged
	return nil
}

// fileBefore returns a recorded version of a file with one name.
func fileBefore(r *record, t effect.Token) (Version, error) {
	if r == nil || r.Type != typeFile || r.hardLink() != "" || r.Elsewhere > 0 {
		return Version{}, noMergeError{}
	}
	v, err := r.version()
	//mutant:none a recorded version has its own token
	if err != nil || !v.Token().Same(t) {
		return Version{}, noMergeError{}
	}
	return v, nil
}

// stored returns the content of a recorded version.
func (m *merging) stored(ctx context.Context, r *record) ([]byte, error) {
	if data, ok := m.known[r.Content]; ok {
		return data, nil
	}
	if r.Kept == nil || r.Kept.Size > maxMergeBytes {
		return nil, noMergeError{}
	}
	data, err := m.open(ctx, *r.Kept)
	if err == nil {
		m.known[r.Content] = data
	}
	return data, err
}

// left returns the content that a change left.
func (m *merging) left(ctx context.Context, inv inverse, before []byte) ([]byte, error) {
	r := inv.Will
	if data, ok := m.known[r.Content]; ok || r.Splice == nil {
		if !ok {
			return m.stored(ctx, r)
		}
		return data, nil
	}
	middle, err := m.open(ctx, r.Splice.Kept)
	if err != nil {
		return nil, err
	}
	data, err := r.Splice.join(before, middle)
	if err != nil || string(canon.SumBytes(data)) != r.Content {
		return nil, noMergeError{}
	}
	m.known[r.Content] = data
	return data, nil
}

func (m *merging) open(ctx context.Context, ref effect.BlobRef) ([]byte, error) {
	data, ok := mergeContent(func() (io.ReadCloser, error) { return m.keep.OpenContent(ctx, ref) })
	if !ok {
		return nil, noMergeError{} // erased or damaged: the file stays as it is
	}
	return data, nil
}

// attributes restores the attributes that the call changed. Those that only the
// other process changed stay, unless they give others more access to the earlier
// content than they had.
func (m *merging) attributes(left, was Version) error {
	no := func(why string) error {
		if m.now.Content == left.Content {
			return noMergeError{} // the plan names the attribute
		}
		return noMergeError{why: why}
	}
	v, ok := m.version, [3]bool{}
	v.Perm, ok[0] = pick(v.Perm, left.Perm, was.Perm)
	v.Owner, ok[1] = pick(v.Owner, left.Owner, was.Owner)
	v.Xattrs, ok[2] = pickXattrs(v.Xattrs, left.Xattrs, was.Xattrs)
	for i, name := range []string{"permission bits", "owner or group", "attributes"} {
		if !ok[i] {
			return no("the call and then another process changed its " + name)
		}
	}
	m.version = v
	const execute = 0o111 // shows no content
	now, before := v, was
	now.Perm, before.Perm = now.Perm&^execute, before.Perm&^execute
	if now.admits(before, m.root.Self().Owner) {
		return nil
	}
	return no("its owner, permission bits or access list were changed after the call, and would give others access to the content before the call")
}

// pick returns the value without the change from was to left. ok is false if
// another process changed it differently.
func pick[T comparable](now, left, was T) (value T, ok bool) {
	switch {
	case now == left:
		return was, true
	case left == was || now == was:
		return now, true
	default:
		return now, false
	}
}

func pickXattrs(now, left, was map[string][]byte) (map[string][]byte, bool) {
	out := map[string][]byte{}
	value := func(all map[string][]byte, key string) string { // "+" before the value: it exists
		v, ok := all[key]
		if !ok {
			return ""
		}
		return "+" + string(v)
	}
	for _, all := range []map[string][]byte{now, left, was} {
		for key := range maps.Keys(all) {
			v, ok := pick(value(now, key), value(left, key), value(was, key))
			if !ok {
				return nil, false
			}
			if v != "" {
				out[key] = []byte(strings.TrimPrefix(v, "+"))
			}
		}
	}
	return out, true
}

// mostOverlaps and mostOverlapBytes bound what a report shows.
const (
	mostOverlaps     = 8
	mostOverlapBytes = 2 << 10
)

func reported(overlaps []linemerge.Overlap) (out []effect.Overlap) {
	text := func(b []byte) string {
		return strings.ToValidUTF8(string(b[:min(len(b), mostOverlapBytes)]), "\uFFFD")
	}
	for _, o := range overlaps[:min(len(overlaps), mostOverlaps)] {
		out = append(out, effect.Overlap{Line: o.Line, Lines: o.Lines, Now: text(o.Ours), Before: text(o.Theirs)})
	}
	return out
}

// overlapText names the lines that both changed.
func overlapText(overlaps []linemerge.Overlap) string {
	var at []string
	for _, o := range overlaps[:min(len(overlaps), mostOverlaps)] {
		switch o.Lines {
		case 0:
			at = append(at, fmt.Sprintf("before line %d", o.Line))
		case 1:
			at = append(at, fmt.Sprintf("line %d", o.Line))
		default:
			at = append(at, fmt.Sprintf("lines %d to %d", o.Line, o.Line+o.Lines-1))
		}
	}
	if more := len(overlaps) - mostOverlaps; more > 0 {
		at = append(at, fmt.Sprintf("%d more places", more))
	}
	return "another process changed lines of the call, or lines beside them: " + strings.Join(at, ", ")
}
