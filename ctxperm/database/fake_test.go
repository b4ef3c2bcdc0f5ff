package database

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/ctxperm/database/internal/engine"
	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/journal"
)

var errFailing = errors.New("broken")

// failingDatabase is a database of one row that fails on demand.
type failingDatabase struct {
	engine.Engine

	identity, outcomeErr, read, restore error

	is   engine.TxnOutcome
	now  engine.Image
	done engine.Outcome
}

func (b *failingDatabase) Scheme() string { return "broken" }

func (b *failingDatabase) Open(at string) (engine.Engine, string, error) {
	if at == "broken:no" {
		return nil, "", errFailing
	}
	return b, at, nil
}

func (b *failingDatabase) Close() error { return nil }

func (b *failingDatabase) Identity(context.Context) (string, error) { return "d_1", b.identity }

func (b *failingDatabase) TxnOutcomeOf(context.Context, engine.TxnMarker) (engine.TxnOutcome, error) {
	return b.is, b.outcomeErr
}

func (b *failingDatabase) Read(_ context.Context, rows []engine.Ref) ([]engine.Outcome, error) {
	out := make([]engine.Outcome, len(rows))
	for i := range out {
		out[i].Now = b.now
	}
	return out, b.read
}

func (b *failingDatabase) Restore(_ context.Context, repairs []engine.RowRestore) ([]engine.Outcome, error) {
	out := make([]engine.Outcome, len(repairs))
	for i := range out {
		out[i] = b.done
	}
	return out, b.restore
}

// failingRow returns a change of its row, from 1 to 2.
func failingRow(at string) effect.Change {
	t := engine.Table{Name: "t", Cols: []string{"a", "b"}, Key: []int{0}}
	i := inverse{At: at, Mark: engine.TxnMarker{Identity: "d_1", Op: "x"}, Table: t, Was: engine.Image{"i1", "i1"}, Will: engine.Image{"i1", "i2"}}
	c, _, err := i.change(context.Background(), "main", t.Ref(i.Was), nil)
	if err != nil {
		panic(err)
	}
	c.N = 1
	return c
}

func failingScheme(t *testing.T, b *failingDatabase) scheme {
	t.Helper()
	d, err := New([]Kind{{}, {b}}, map[string]string{"main": "broken:a"})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, d.Close()) })
	return scheme{d}
}

// TestBrokenPlan checks that a failure of the database changes no row, and
// leads to no wrong conclusion about one.
func TestBrokenPlan(t *testing.T) {
	for _, b := range []*failingDatabase{{identity: errFailing}, {outcomeErr: errFailing}, {read: errFailing}} {
		b.is, b.now = engine.Committed, engine.Image{"i1", "i2"}
		s := failingScheme(t, b)
		steps, _, err := s.Plan(t.Context(), []effect.Change{failingRow("broken:a")}, journal.Memory())
		require.NoError(t, err)
		require.Equal(t, effect.Failed, steps[0].Plan)
		require.Contains(t, steps[0].Why, "broken")
		_, known, err := s.TookEffect(t.Context(), []effect.Change{failingRow("broken:a")})
		require.Equal(t, b.read == nil, err != nil)
		require.Equal(t, b.read != nil, known)
	}
	s := failingScheme(t, &failingDatabase{read: errFailing})
	_, err := s.Versions(t.Context(), []effect.Change{failingRow("broken:a")})
	require.ErrorIs(t, err, errFailing)
	_, err = s.Settle(t.Context(), failingRow("broken:a"))
	require.ErrorIs(t, err, errFailing)
	_, err = s.Versions(t.Context(), []effect.Change{{Inverse: []byte("x")}})
	require.Error(t, err)
}

// TestBrokenTxnOutcome checks that only a known commit counts as an effect, and only
// a known rollback as none.
func TestBrokenTxnOutcome(t *testing.T) {
	for is, want := range map[engine.TxnOutcome]struct{ took, known, err bool }{
		engine.Committed: {true, true, false}, engine.Aborted: {false, true, false}, engine.Running: {false, false, true}, engine.Lost: {false, false, false},
	} {
		took, known, err := failingScheme(t, &failingDatabase{is: is}).TookEffect(t.Context(), []effect.Change{failingRow("broken:a")})
		require.Equal(t, want, struct{ took, known, err bool }{took, known, err != nil}, "%d", is)
	}
}

// TestBrokenRestore checks that the report contains what the database returns
// about restored rows.
func TestBrokenRestore(t *testing.T) {
	for _, tt := range []struct {
		b    failingDatabase
		want effect.Outcome
		why  string
	}{
		{failingDatabase{}, effect.Restored, ""},
		{failingDatabase{restore: errFailing}, effect.Failed, "broken"},
		{failingDatabase{restore: engine.ErrUndetermined}, effect.Unknown, "is unknown"},
		{failingDatabase{done: engine.Outcome{Why: "in the way"}}, effect.Conflict, "in the way"},
		{failingDatabase{done: engine.Outcome{Why: "disk full", Bad: true}}, effect.Failed, "disk full"},
		{failingDatabase{identity: errFailing}, effect.Failed, "not available"},
	} {
		res := failingScheme(t, &tt.b).Apply(t.Context(), effect.Step{Change: failingRow("broken:a")}, journal.Memory())
		require.Equal(t, tt.want, res.Outcome, tt.why)
		require.Contains(t, res.Why, tt.why)
	}
}

// TestElsewhere checks that an unnamed database is opened at its recorded
// location, once.
func TestElsewhere(t *testing.T) {
	b := &failingDatabase{is: engine.Committed, now: engine.Image{"i1", "i2"}}
	d, err := New([]Kind{{b}}, nil)
	require.NoError(t, err)
	s := scheme{d}
	for range 2 {
		steps, _, err := s.Plan(t.Context(), []effect.Change{failingRow("broken:a")}, journal.Memory())
		require.NoError(t, err)
		require.Equal(t, effect.Restored, steps[0].Plan, steps[0].Why)
	}
	require.Len(t, d.others, 1)
	steps, _, err := s.Plan(t.Context(), []effect.Change{failingRow("broken:no")}, journal.Memory())
	require.NoError(t, err)
	require.Contains(t, steps[0].Why, "--database main=LOCATION")
	require.NoError(t, d.Close())
	_, err = New([]Kind{{b}}, map[string]string{"main": "broken:no"})
	require.ErrorIs(t, err, errFailing)
}

// TestTwice checks that of two changes of one row the last defines the expected
// version, and the first the restored one.
func TestTwice(t *testing.T) {
	b := &failingDatabase{is: engine.Committed, now: engine.Image{"i1", "i3"}}
	first := failingRow("broken:a")
	i := inverse{At: "broken:a", Mark: engine.TxnMarker{Identity: "d_1", Op: "x"}, Table: engine.Table{Name: "t", Cols: []string{"a", "b"}, Key: []int{0}}, Was: engine.Image{"i1", "i2"}, Will: engine.Image{"i1", "i3"}}
	second, _, err := i.change(t.Context(), "main", i.Table.Ref(i.Was), nil)
	require.NoError(t, err)
	second.N = 2
	steps, _, err := failingScheme(t, b).Plan(t.Context(), []effect.Change{second, first}, journal.Memory())
	require.NoError(t, err)
	require.Len(t, steps, 1)
	require.Equal(t, effect.Restored, steps[0].Plan)
	require.Equal(t, []int{1, 2}, steps[0].Of)
	require.Equal(t, first.Pre, steps[0].Change.Post)
}

// noKeeper stores nothing, or returns wrong content.
type noKeeper struct{ text string }

func (noKeeper) StoreContent(context.Context, io.Reader) (journal.Blob, error) {
	return journal.Blob{}, errFailing
}

func (k noKeeper) OpenContent(context.Context, effect.BlobRef) (io.ReadCloser, error) {
	if k.text == "" {
		return nil, errFailing
	}
	return io.NopCloser(io.MultiReader(strings.NewReader(k.text), failing{k.text == "cut"})), nil
}

type failing struct{ fails bool }

func (f failing) Read([]byte) (int, error) {
	if f.fails {
		return 0, errFailing
	}
	return 0, io.EOF
}

// TestNotKept checks that large rows that cannot be stored stop a call before
// its commit, and a revert that cannot read them.
func TestNotKept(t *testing.T) {
	table := engine.Table{Name: "t", Cols: []string{"a"}, Key: []int{0}}
	i := inverse{At: "broken:a", Mark: engine.TxnMarker{Identity: "d_1", Op: "x"}, Table: table, Was: engine.Image{"t" + strings.Repeat("x", inlineMax)}}
	_, _, err := i.change(t.Context(), "main", table.Ref(i.Was), noKeeper{})
	require.ErrorIs(t, err, errFailing)
	c, blob, err := i.change(t.Context(), "main", table.Ref(i.Was), journal.Memory())
	require.NoError(t, err)
	require.NotNil(t, blob)
	s := failingScheme(t, &failingDatabase{is: engine.Committed})
	for _, text := range []string{"", "cut", "nonsense"} {
		_, _, err := s.Plan(t.Context(), []effect.Change{c}, noKeeper{text})
		require.Error(t, err, text)
	}
	text, err := canon.Marshal(images{i.Was, i.Will})
	require.NoError(t, err)
	_, _, err = s.Plan(t.Context(), []effect.Change{c}, noKeeper{string(text)})
	require.ErrorIs(t, err, errFailing)
	before, _, err := s.View(c)
	require.NoError(t, err)
	require.Contains(t, before.Lines[0], "too large")
}

// TestCellWords checks that a value is shown in SQL syntax, truncated to a
// line.
func TestCellWords(t *testing.T) {
	for cell, want := range map[string]string{"": "NULL", "i1": "1", "ta": `"a"`, "bAP8=": "base64 AP8=", "x/w==": "base64 /w=="} {
		require.Equal(t, want, cellWords(cell))
	}
	require.Contains(t, cellWords("t"+strings.Repeat("y", 300)), "… (300 bytes)")
}
