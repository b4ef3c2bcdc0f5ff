package disclosure_test

import (
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/internal/commitment"
	"github.com/remit-dev/remit/revert/disclosure"
	"github.com/remit-dev/remit/revert/record"
)

// vectors is testdata/journal/records.json.
type vectors struct {
	Records     []vector `json:"records"`
	Disclosures []struct {
		Leaf       string                `json:"leaf"`
		Shown      []string              `json:"shown"`
		Disclosure disclosure.Disclosure `json:"disclosure"`
	} `json:"disclosures"`
}

type vector struct {
	Salt            string `json:"salt"`
	CanonicalHeader string `json:"canonical_header"`
	CanonicalBody   string `json:"canonical_body"`
	Leaf            string `json:"leaf"`
}

func readVectors(t require.TestingT) (file vectors) {
	data, err := os.ReadFile(filepath.Join("..", "..", "testdata", "journal", "records.json"))
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(data, &file))
	return file
}

func (v vector) entry(t require.TestingT) record.Entry {
	salt, err := hex.DecodeString(v.Salt)
	require.NoError(t, err)
	e, err := record.Entry{Pos: 7, Head: []byte(v.CanonicalHeader), Salt: salt, Body: []byte(v.CanonicalBody), Leaf: v.Leaf}.Checked()
	require.NoError(t, err)
	return e
}

// entryWith returns the entry that has a leaf.
func (f vectors) entryWith(t *testing.T, leaf string) record.Entry {
	t.Helper()
	i := slices.IndexFunc(f.Records, func(v vector) bool { return v.Leaf == leaf })
	require.GreaterOrEqual(t, i, 0)
	return f.Records[i].entry(t)
}

func TestDisclosureVectors(t *testing.T) {
	file := readVectors(t)
	for _, v := range file.Disclosures {
		e := file.entryWith(t, v.Leaf)
		d, err := disclosure.Of(e, v.Shown...)
		require.NoError(t, err)
		require.Equal(t, v.Disclosure, d)
		h, err := v.Disclosure.Verify(v.Leaf)
		require.NoError(t, err)
		require.Equal(t, e.Header, h)
	}
}

// names returns the names of the fields of an entry.
func names(t require.TestingT, e record.Entry) (all []string) {
	d, err := disclosure.Of(e)
	require.NoError(t, err)
	for _, f := range d.Fields {
		all = append(all, f.Name)
	}
	return all
}

// TestDisclosureShowsOneField shows each field of each record alone. Nothing
// that opens another field is in the result.
func TestDisclosureShowsOneField(t *testing.T) {
	for _, v := range readVectors(t).Records {
		e := v.entry(t)
		whole, err := disclosure.Of(e, names(t, e)...)
		require.NoError(t, err)
		var members map[string]json.RawMessage
		require.NoError(t, json.Unmarshal(e.Body, &members))
		require.Len(t, whole.Fields, len(members), "the names of a disclosure are complete: others are absent")
		for i, f := range whole.Fields {
			d, err := disclosure.Of(e, f.Name)
			require.NoError(t, err)
			h, err := d.Verify(e.Leaf)
			require.NoError(t, err)
			require.Equal(t, e.Header, h)
			require.Equal(t, string(members[f.Name]), d.Fields[i].Value)
			text, err := canon.Marshal(d)
			require.NoError(t, err)
			require.NotContains(t, string(text), v.Salt)
			for j, other := range whole.Fields {
				if j != i {
					require.Empty(t, d.Fields[j].Value)
					require.NotContains(t, string(text), other.Salt)
				}
			}
			var back disclosure.Disclosure
			require.NoError(t, canon.Decode(text, &back))
			require.Equal(t, d, back)
		}
	}
}

// TestDisclosureOfOtherBytes changes each byte of some disclosures, and what
// they consist of.
func TestDisclosureOfOtherBytes(t *testing.T) {
	file := readVectors(t)
	for _, v := range file.Disclosures {
		refused := func(d disclosure.Disclosure, leaf, why string) {
			t.Helper()
			h, err := d.Verify(leaf)
			require.Error(t, err, why)
			require.Zero(t, h)
		}
		d := v.Disclosure
		for _, other := range file.Records {
			if other.Leaf != v.Leaf {
				refused(d, other.Leaf, "another record")
			}
		}
		refused(d, "", "no leaf")
		changed := func(text string, to func(d *disclosure.Disclosure, text string)) {
			for i := range len(text) {
				for _, bit := range []byte{1, 2, 4, 0x20, 0x80} {
					b := []byte(text)
					b[i] ^= bit
					other := disclosure.Disclosure{Header: d.Header, Fields: slices.Clone(d.Fields)}
					to(&other, string(b))
					refused(other, v.Leaf, string(b))
				}
			}
		}
		changed(d.Header, func(d *disclosure.Disclosure, text string) { d.Header = text })
		for i, f := range d.Fields {
			changed(f.Name, func(d *disclosure.Disclosure, text string) { d.Fields[i].Name = text })
			changed(f.Value, func(d *disclosure.Disclosure, text string) { d.Fields[i].Value = text })
			changed(f.Salt, func(d *disclosure.Disclosure, text string) { d.Fields[i].Salt = text })
			changed(f.Digest, func(d *disclosure.Disclosure, text string) { d.Fields[i].Digest = text })

			without := disclosure.Disclosure{Header: d.Header, Fields: slices.Delete(slices.Clone(d.Fields), i, i+1)}
			refused(without, v.Leaf, "a field is missing")
			twice := disclosure.Disclosure{Header: d.Header, Fields: slices.Insert(slices.Clone(d.Fields), i, f)}
			refused(twice, v.Leaf, "a field stands twice")
			f.Name += "x"
			more := disclosure.Disclosure{Header: d.Header, Fields: slices.Insert(slices.Clone(d.Fields), i+1, f)}
			refused(more, v.Leaf, "a field is added")
			if i > 0 {
				swapped := disclosure.Disclosure{Header: d.Header, Fields: slices.Clone(d.Fields)}
				swapped.Fields[i-1], swapped.Fields[i] = swapped.Fields[i], swapped.Fields[i-1]
				refused(swapped, v.Leaf, "fields in another order")
				swapped.Fields[i-1].Name, swapped.Fields[i].Name = swapped.Fields[i].Name, swapped.Fields[i-1].Name
				refused(swapped, v.Leaf, "the value of another field")
			}
		}
	}
}

func TestDisclosureIsRefused(t *testing.T) {
	v := readVectors(t).Records[0]
	e := v.entry(t)
	_, err := disclosure.Of(e, "nothing")
	require.ErrorContains(t, err, `has no field "nothing"`)
	damaged := v.entry(t)
	damaged.Body[5] ^= 1
	_, err = disclosure.Of(damaged)
	require.ErrorIs(t, err, record.ErrDamaged)
	damaged = v.entry(t)
	damaged.Erased, damaged.Body, damaged.Salt = damaged.BodyDigest(), nil, nil
	_, err = disclosure.Of(damaged)
	require.ErrorIs(t, err, record.ErrErased)

	for says, change := range map[string]func(d *disclosure.Disclosure, f *disclosure.Field){
		"neither a value":         func(_ *disclosure.Disclosure, f *disclosure.Field) { f.Value, f.Salt = "", "" },
		"a value and a digest":    func(d *disclosure.Disclosure, f *disclosure.Field) { f.Digest = d.Fields[1].Digest },
		"a salt and no value":     func(_ *disclosure.Disclosure, f *disclosure.Field) { f.Value = "" },
		"lower case hexadecimal":  func(_ *disclosure.Disclosure, f *disclosure.Field) { f.Salt = strings.ToUpper(f.Salt) },
		"the value is not":        func(_ *disclosure.Disclosure, f *disclosure.Field) { f.Value += " " },
		"cannot have this name":   func(_ *disclosure.Disclosure, f *disclosure.Field) { f.Name = strings.Repeat("n", 256) },
		"does not fit":            func(d *disclosure.Disclosure, _ *disclosure.Field) { d.Header = "" },
		"does not follow":         func(d *disclosure.Disclosure, f *disclosure.Field) { f.Name = d.Fields[1].Name },
		"it does not fit the lea": func(d *disclosure.Disclosure, _ *disclosure.Field) { d.Fields = nil },
	} {
		d, err := disclosure.Of(e, names(t, e)[0])
		require.NoError(t, err)
		change(&d, &d.Fields[0])
		_, err = d.Verify(e.Leaf)
		require.ErrorContains(t, err, says)
	}
}

// TestDisclosureOfASealedHeader seals headers that a reader must not accept,
// although they belong to the leaf.
func TestDisclosureOfASealedHeader(t *testing.T) {
	for head, says := range map[string]string{
		`{"at":"2026-01-02T03:04:05Z","kind":"committed","v":2}`:  "newer",
		`{"at":"2026-01-02T03:04:05Z", "kind":"committed","v":1}`: "not canonical",
		`{"at":7,"kind":"committed","v":1}`:                       "header",
	} {
		e := record.Entry{Head: []byte(head), Salt: make([]byte, record.SaltSize), Body: []byte(`{}`)}
		e.Leaf = commitment.Leaf(e.Head, commitment.Body(nil))
		d, err := disclosure.Of(e)
		require.NoError(t, err)
		_, err = d.Verify(e.Leaf)
		require.ErrorContains(t, err, says)
	}
}

// TestDisclosureOfASealedBody has leaves whose owner computed them so that one
// record says two things.
func TestDisclosureOfASealedBody(t *testing.T) {
	const header = `{"at":"2026-01-02T03:04:05Z","kind":"committed","v":1}`
	salt := []byte("sixteen bytes!!!")
	show := func(name, value string) disclosure.Field {
		return disclosure.Field{Name: name, Value: value, Salt: hex.EncodeToString(salt)}
	}
	for says, shown := range map[string][]disclosure.Field{
		"":                            {show("a", "1"), show("b", "2")},
		`"a": it does not follow`:     {show("a", "1"), show("a", "2")},
		`"b": it does not follow`:     {show("c", "1"), show("b", "2")},
		"the value is not canonical":  {show("a", `{"x":1,"x":2}`)},
		"value is not canonical JSON": {show("a", "1.0")},
		"cannot have this name":       {show("a\u0000", "1")},
	} {
		var fields []commitment.Field
		for _, f := range shown {
			fields = append(fields, commitment.NewField(f.Name, f.Value, salt))
		}
		commitment.Hash(fields)
		_, err := disclosure.Disclosure{Header: header, Fields: shown}.Verify(commitment.Leaf([]byte(header), commitment.Body(fields)))
		if says == "" {
			require.NoError(t, err)
		} else {
			require.ErrorContains(t, err, says)
		}
	}
}

// TestDisclosureOfErasedFields shows what remains of records with erased fields.
func TestDisclosureOfErasedFields(t *testing.T) {
	all := readVectors(t).Records
	rapid.Check(t, func(rt *rapid.T) {
		e := rapid.SampledFrom(all).Draw(rt, "record").entry(t)
		var shown, erased []string
		for _, name := range names(rt, e) {
			switch rapid.IntRange(0, 2).Draw(rt, name) {
			case 0:
				shown = append(shown, name)
			case 1:
				erased = append(erased, name)
			}
		}
		want, err := disclosure.Of(e, shown...)
		require.NoError(rt, err)
		if len(erased) > 0 {
			e, err = e.EraseFields(erased...)
			require.NoError(rt, err)
			_, err = disclosure.Of(e, erased[0])
			require.ErrorIs(rt, err, record.ErrErased)
		}
		got, err := disclosure.Of(e, shown...)
		require.NoError(rt, err)
		require.Equal(rt, want, got, "an erased field is like a hidden one")
		_, err = got.Verify(e.Leaf)
		require.NoError(rt, err)
	})
}

// FuzzDisclosure checks that what verifies is true: it has the header and the
// fields of the record, and each shown value.
func FuzzDisclosure(f *testing.F) {
	e := readVectors(f).Records[0].entry(f)
	all := names(f, e)
	for _, shown := range [][]string{nil, all[:1], all} {
		d, err := disclosure.Of(e, shown...)
		require.NoError(f, err)
		text, err := canon.Marshal(d)
		require.NoError(f, err)
		f.Add(text)
	}
	var values map[string]json.RawMessage
	require.NoError(f, json.Unmarshal(e.Body, &values))
	f.Fuzz(func(t *testing.T, text []byte) {
		var d disclosure.Disclosure
		if canon.Decode(text, &d) != nil {
			return
		}
		if _, err := d.Verify(e.Leaf); err != nil {
			return
		}
		require.Equal(t, string(e.Head), d.Header)
		require.Len(t, d.Fields, len(values))
		for i, f := range d.Fields {
			require.Equal(t, all[i], f.Name)
			if f.Value != "" {
				require.Equal(t, string(values[f.Name]), f.Value)
			}
		}
	})
}
