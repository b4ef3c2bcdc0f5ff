package canon_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/remit-dev/remit/internal/canon"
)

// FuzzParse checks any bytes: no panic, a stable canonical form that the
// standard decoder reads too, and a smaller limit that never makes a document
// valid.
func FuzzParse(f *testing.F) {
	for _, c := range load(f).Cases {
		if c.Nest <= 1000 {
			f.Add(document(f, c.In, c.InHex, c.Nest))
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		v, err := canon.Parse(data, canon.DefaultLimits())
		if err != nil {
			return
		}
		first := v.Canonical()
		if !json.Valid(data) || !json.Valid(first) {
			t.Fatalf("accepted %q, which is not JSON, as %q", data, first)
		}
		again, err := canon.Canonicalize(first, canon.Limits{Bytes: len(first), Depth: 128})
		if err != nil {
			t.Fatalf("canonical form %q refused: %v", first, err)
		}
		if !bytes.Equal(first, again) {
			t.Fatalf("canonical form is not stable: %q became %q", first, again)
		}
		whole, err := canon.Marshal(v.Any())
		if err != nil || !bytes.Equal(first, whole) {
			t.Fatalf("Any lost something: %q became %q, %v", first, whole, err)
		}
	})
}

func BenchmarkParse(b *testing.B) {
	doc := []byte(`{"path":"src/internal/canon/parse.go","content":"package canon\n\nfunc f() {}\n","mode":420,"edits":[` +
		`{"line":12,"text":"a line of text"},{"line":14,"text":"another line"}],"dry_run":false,"ratio":0.25,"tags":["a","b","c"],` +
		`"note":"nothing of note is written here, it is only some text of a usual length","owner":null}`)
	b.Run("Parse", func(b *testing.B) {
		b.SetBytes(int64(len(doc)))
		b.ReportAllocs()
		for b.Loop() {
			if _, err := canon.Parse(doc, canon.DefaultLimits()); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("encoding/json", func(b *testing.B) {
		b.SetBytes(int64(len(doc)))
		b.ReportAllocs()
		for b.Loop() {
			var v any
			if err := json.Unmarshal(doc, &v); err != nil {
				b.Fatal(err)
			}
		}
	})
	v, err := canon.Parse(doc, canon.DefaultLimits())
	if err != nil {
		b.Fatal(err)
	}
	b.Run("Canonical", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_ = v.Canonical()
		}
	})
	b.Run("Sum", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_ = canon.Sum("remit/test", doc)
		}
	})
}
