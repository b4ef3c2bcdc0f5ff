package record_test

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/revert/record"
)

// vector is one sealed record of testdata/journal/records.json.
type vector struct {
	Kind            record.Kind     `json:"kind"`
	Header          record.Header   `json:"header"`
	Salt            string          `json:"salt"`
	Body            json.RawMessage `json:"body"`
	CanonicalHeader string          `json:"canonical_header"`
	CanonicalBody   string          `json:"canonical_body"`
	BodyDigest      string          `json:"body_digest"`
	Leaf            string          `json:"leaf"`
}

func vectors(t testing.TB) []vector {
	t.Helper()
	return readVectors(t).Records
}

// vectorsFile is testdata/journal/records.json. TestFormulas writes it.
type vectorsFile struct {
	About       string          `json:"about"`
	Records     []vector        `json:"records"`
	Disclosures json.RawMessage `json:"disclosures"` // see revert/disclosure
	Erased      []erasedVector  `json:"erased_fields"`
}

func readVectors(t testing.TB) (file vectorsFile) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "..", "testdata", "journal", "records.json"))
	require.NoError(t, err)
	require.NoError(t, canon.Decode(data, &file))
	return file
}

// record returns the record of a vector's header and body.
func (v vector) record(t *testing.T) record.Record {
	t.Helper()
	body, err := record.NewBody(v.Kind)
	require.NoError(t, err)
	require.NoError(t, canon.Decode(v.Body, body))
	return record.Record{Header: v.Header, Body: body}
}

// entry returns a vector as a journal would return it.
func (v vector) entry(t *testing.T) record.Entry {
	t.Helper()
	salt, err := hex.DecodeString(v.Salt)
	require.NoError(t, err)
	return record.Entry{Pos: 7, Header: v.Header, Head: []byte(v.CanonicalHeader), Salt: salt, Body: []byte(v.CanonicalBody), Leaf: v.Leaf}
}

func TestRecordVectors(t *testing.T) {
	var kinds []record.Kind
	for _, v := range vectors(t) {
		kinds = append(kinds, v.Kind)
		t.Run(string(v.Kind), func(t *testing.T) {
			want := v.entry(t)
			sealed, err := record.Seal(v.record(t), want.Salt)
			require.NoError(t, err)
			require.Equal(t, v.CanonicalHeader, string(sealed.Head))
			require.Equal(t, v.CanonicalBody, string(sealed.Body))
			require.Equal(t, v.BodyDigest, sealed.BodyDigest())
			sealed.Pos = want.Pos
			want, err = want.Checked()
			require.NoError(t, err)
			require.Equal(t, want, sealed)

			back, err := record.Unseal(want)
			require.NoError(t, err)
			again, err := record.Seal(back, want.Salt)
			require.NoError(t, err)
			require.Equal(t, v.Leaf, again.Leaf, "nothing is lost on the way")
		})
	}
	require.Equal(t, record.Kinds(), slices.Compact(kinds), "each kind has a vector, those of one kind stand together")
}

func TestDamagedRecords(t *testing.T) {
	for _, v := range vectors(t) {
		for part, damage := range map[string]func(*record.Entry){
			"head":    func(e *record.Entry) { e.Head[len(e.Head)/2] ^= 1 },
			"salt":    func(e *record.Entry) { e.Salt[0] ^= 1 },
			"body":    func(e *record.Entry) { e.Body[len(e.Body)-1] ^= 1 },
			"leaf":    func(e *record.Entry) { e.Leaf = v.BodyDigest },
			"no body": func(e *record.Entry) { e.Body = nil },
			"erased":  func(e *record.Entry) { e.Body, e.Salt = nil, nil },
		} {
			t.Run(string(v.Kind)+" "+part, func(t *testing.T) {
				e := v.entry(t)
				damage(&e)
				require.ErrorIs(t, e.Check(), record.ErrDamaged)
				_, err := record.Unseal(e)
				require.ErrorIs(t, err, record.ErrDamaged)
				require.ErrorContains(t, err, "entry 7")
			})
		}
	}
}

func TestAnErasedRecordIsStillChecked(t *testing.T) {
	v := vectors(t)[0]
	e := v.entry(t)
	e.Erased = e.BodyDigest()
	require.ErrorIs(t, e.Check(), record.ErrDamaged, "it has both")
	e.Salt, e.Body = nil, nil
	require.NoError(t, e.Check())
	_, err := record.Unseal(e)
	require.ErrorIs(t, err, record.ErrErased)
	require.NotErrorIs(t, err, record.ErrDamaged)
	e.Erased = v.Leaf
	require.ErrorIs(t, e.Check(), record.ErrDamaged)
	e.Erased = v.BodyDigest
	e.Head[0] ^= 1
	require.ErrorIs(t, e.Check(), record.ErrDamaged)
}

func TestRecordsOfANewerRemit(t *testing.T) {
	seal := func(head, body string) record.Entry {
		e := record.Entry{Pos: 3, Head: []byte(head), Salt: make([]byte, record.SaltSize), Body: []byte(body)}
		e.Leaf = record.Leaf(e)
		return e
	}
	for name, test := range map[string]struct{ head, body, says string }{
		"version": {`{"at":"2026-01-02T03:04:05Z","kind":"committed","v":2}`, `{}`, "version 2"},
		"kind":    {`{"at":"2026-01-02T03:04:05Z","kind":"promised","v":1}`, `{}`, `kind "promised"`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := record.Unseal(seal(test.head, test.body))
			require.ErrorContains(t, err, test.says)
			require.ErrorContains(t, err, "newer")
			require.NotErrorIs(t, err, record.ErrDamaged)
		})
	}
	_, err := record.Unseal(seal(`{"at":"2026-01-02T03:04:05Z","kind":"savepoint","v":1}`, `{"name":5}`))
	require.ErrorIs(t, err, record.ErrDamaged, "a known record with a body that it cannot have")
	_, err = seal(`{"at":5,"kind":"savepoint","v":1}`, `{"name":"s"}`).Checked()
	require.ErrorIs(t, err, record.ErrDamaged, "a header that it cannot have")
	require.ErrorContains(t, err, "entry 3: header")
}

func TestSealRefuses(t *testing.T) {
	salt := make([]byte, record.SaltSize)
	sound := record.Record{Header: record.Header{Kind: record.KindSavepoint}, Body: &record.Savepoint{Name: "a"}}
	_, err := record.Seal(sound, salt[1:])
	require.ErrorContains(t, err, "salt of 15 bytes")
	other := sound
	other.Body = &record.Committed{}
	_, err = record.Seal(other, salt)
	require.ErrorContains(t, err, "does not belong")
	for name, r := range map[string]record.Record{
		"header": {Header: record.Header{Kind: record.KindSavepoint, Session: "\xff"}, Body: sound.Body},
		"body":   {Header: record.Header{Kind: record.KindRevertNote}, Body: &record.RevertNote{Value: json.RawMessage("{")}},
	} {
		_, err = record.Seal(r, salt)
		require.ErrorContains(t, err, name)
	}
	none := sound
	none.Body = nil
	_, err = record.Seal(none, salt)
	require.Error(t, err)
}

// TestRecordsAreReadable checks that header and body are one JSON object
// each.
func TestRecordsAreReadable(t *testing.T) {
	r := record.Record{Header: record.Header{V: 1, Kind: record.KindSavepoint, Txn: "t_1", At: time.Unix(0, 0).UTC()}, Body: &record.Savepoint{Name: "here"}}
	text, err := json.Marshal(r)
	require.NoError(t, err)
	require.JSONEq(t, `{"v":1,"kind":"savepoint","txn":"t_1","at":"1970-01-01T00:00:00Z","body":{"name":"here"}}`, string(text))
}

// TestEveryFieldOfEveryKindRoundTrips fills every field with a distinct value,
// so that it fails if one is dropped, renamed or confused with another.
func TestEveryFieldOfEveryKindRoundTrips(t *testing.T) {
	for _, kind := range record.Kinds() {
		t.Run(string(kind), func(t *testing.T) {
			body, err := record.NewBody(kind)
			require.NoError(t, err)
			n := 0
			fill(t, reflect.ValueOf(body).Elem(), &n)
			want := record.Record{Body: body}
			fill(t, reflect.ValueOf(&want.Header).Elem(), &n)
			want.Kind, want.V = kind, record.Version
			e, err := record.Seal(want, []byte("0123456789abcdef"))
			require.NoError(t, err)
			got, err := record.Unseal(e)
			require.NoError(t, err)
			require.Equal(t, want, got)
		})
	}
}

// fill gives every field below v a distinct value.
func fill(t *testing.T, v reflect.Value, n *int) {
	t.Helper()
	*n++
	switch p := v.Addr().Interface().(type) {
	case *time.Time:
		*p = time.Date(2026, 1, 2, 3, 4, *n, *n, time.UTC)
		return
	case *json.RawMessage:
		*p = json.RawMessage(fmt.Sprintf(`{"n":%d}`, *n))
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(fmt.Sprint("value ", *n))
	case reflect.Int, reflect.Int64:
		v.SetInt(int64(*n))
	case reflect.Uint8:
		v.SetUint(uint64(*n % 256))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Map:
		if one := reflect.New(v.Type().Elem()).Elem(); one.Type() == reflect.TypeFor[json.Number]() {
			v.Set(reflect.ValueOf(map[string]json.Number{"sum": json.Number(fmt.Sprintf("%d.5", *n))}))
		} else {
			fill(t, one, n)
			v.Set(reflect.MakeMap(v.Type()))
			v.SetMapIndex(reflect.ValueOf("key"), one)
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(t, v.Elem(), n)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		for i := range v.Len() {
			fill(t, v.Index(i), n)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			fill(t, v.Field(i), n)
		}
	default:
		t.Fatalf("a field of type %v: say here how to fill it", v.Type())
	}
}

// TestKept checks that copies of a kept entry share its decoded body, and that
// an erased entry keeps nothing of it.
func TestKept(t *testing.T) {
	e, err := record.Seal(record.Record{Header: record.Header{Kind: record.KindRevertNote, Call: "c"}, Body: &record.RevertNote{Key: "k", Value: []byte(`1`)}}, make([]byte, record.SaltSize))
	require.NoError(t, err)
	_, err = record.Entry{Head: e.Head, Salt: e.Salt, Body: e.Body, Leaf: "sha256:other"}.Kept()
	require.ErrorIs(t, err, record.ErrDamaged)
	kept, err := e.Kept()
	require.NoError(t, err)
	one, err := record.Unseal(kept)
	require.NoError(t, err)
	two, err := record.Unseal(kept)
	require.NoError(t, err)
	require.Same(t, one.Body, two.Body)
	own, err := record.Unseal(e)
	require.NoError(t, err)
	require.Equal(t, own, one)
	require.NotSame(t, own.Body, one.Body)

	kept.Erased, kept.Salt, kept.Body = kept.BodyDigest(), nil, nil
	kept, err = kept.Kept()
	require.NoError(t, err)
	_, err = record.Unseal(kept)
	require.ErrorIs(t, err, record.ErrErased)
}
