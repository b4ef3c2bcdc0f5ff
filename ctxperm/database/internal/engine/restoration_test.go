package engine

import (
	"context"
	"maps"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// fakeRows is a database of one table, whose rows are a name and a value.
type fakeRows struct {
	rows    map[string]Image
	points  map[string]map[string]Image // savepoints
	stores  func(Image) Image           // transforms each written image
	along   map[string]Image            // by written row: another one that gets this image
	written []string
	changed []Ref
}

func fake(rows ...Image) *fakeRows {
	f := &fakeRows{rows: map[string]Image{}, points: map[string]map[string]Image{}, stores: func(i Image) Image { return i }}
	for _, i := range rows {
		f.rows[i[0]] = i
	}
	return f
}

var fakeTable = Table{Name: "t", Cols: []string{"name", "value"}, Key: []int{0}}

func (f *fakeRows) Look(_ context.Context, ref Ref) (Outcome, error) {
	return Outcome{Now: f.rows[ref.Key[0]]}, nil
}
func (f *fakeRows) Row(_ context.Context, ref Ref) (Image, error) { return f.rows[ref.Key[0]], nil }
func (*fakeRows) Check(context.Context, bool) error               { return nil }
func (*fakeRows) Constraint(error) string                         { return "" }
func (*fakeRows) Commit(context.Context) error                    { return nil }
func (*fakeRows) Blame(context.Context, []RowRestore, []Outcome) error {
	return nil
}

func (f *fakeRows) Do(_ context.Context, texts ...string) error {
	for _, text := range texts {
		if name, ok := strings.CutPrefix(text, "SAVEPOINT "); ok {
			f.points[name] = maps.Clone(f.rows)
		} else if name, ok := strings.CutPrefix(text, "ROLLBACK TO "); ok {
			f.rows = maps.Clone(f.points[name])
		}
	}
	return nil
}

func (f *fakeRows) Write(_ context.Context, ref Ref, _, want Image) error {
	name := ref.Key[0]
	f.written, f.changed = append(f.written, name), []Ref{ref}
	f.rows[name] = f.stores(want)
	if other := f.along[name]; other != nil {
		f.rows[other[0]] = other
		f.changed = append(f.changed, fakeTable.Ref(other))
	}
	return nil
}

func (f *fakeRows) Vacate(context.Context, Ref, Image, Image) error { return ErrRowBlocked }

func (f *fakeRows) Changed(context.Context) ([]Ref, string, error) { return f.changed, "", nil }

func repairs(from, want []Image) (all []RowRestore) {
	for i := range from {
		all = append(all, RowRestore{Ref: fakeTable.Ref(want[i]), From: from[i], Want: want[i]})
	}
	return all
}

// TestStoredInAnotherWay checks a row that the database stores with another
// image than written. It stays as the call left it, and the others are
// restored.
func TestStoredInAnotherWay(t *testing.T) {
	left, was := []Image{{"a", "2"}, {"b", "2"}}, []Image{{"a", "1"}, {"b", "1"}}
	f := fake(left...)
	f.stores = func(i Image) Image {
		if i[0] == "b" {
			return Image{"b", "rounded"}
		}
		return i
	}
	out, err := Restore(t.Context(), f, repairs(left, was))
	require.NoError(t, err)
	require.Equal(t, Outcome{Now: was[0]}, out[0])
	require.Equal(t, "the database stores it in another way than it was", out[1].Why)
	require.Equal(t, map[string]Image{"a": was[0], "b": left[1]}, f.rows)
}

// TestBackWithAnother checks that a row that was restored with another one is
// not written again.
func TestBackWithAnother(t *testing.T) {
	left, was := []Image{{"a", "2"}, {"b", "2"}}, []Image{{"a", "1"}, {"b", "1"}}
	f := fake(left...)
	f.along = map[string]Image{"b": was[0]}
	out, err := Restore(t.Context(), f, repairs(left, was))
	require.NoError(t, err)
	require.Equal(t, []Outcome{{Now: was[0]}, {Now: was[1]}}, out)
	require.Equal(t, []string{"b"}, f.written)
}
