package revert_test

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
	"github.com/remit-dev/remit/revert"
)

// vector is one sealed record of testdata/journal/records.json.
type vector struct {
	Kind            revert.Kind     `json:"kind"`
	Header          revert.Header   `json:"header"`
	Salt            string          `json:"salt"`
	Body            json.RawMessage `json:"body"`
	CanonicalHeader string          `json:"canonical_header"`
	CanonicalBody   string          `json:"canonical_body"`
	BodyDigest      string          `json:"body_digest"`
	Leaf            string          `json:"leaf"`
}

func vectors(t testing.TB) []vector {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "testdata", "journal", "records.json"))
	require.NoError(t, err)
	var file struct {
		About   string   `json:"about"`
		Records []vector `json:"records"`
	}
	require.NoError(t, canon.Decode(data, &file))
	return file.Records
}

// record is what a vector's header and body say.
func (v vector) record(t *testing.T) revert.Record {
	t.Helper()
	body, err := revert.NewBody(v.Kind)
	require.NoError(t, err)
	require.NoError(t, canon.Decode(v.Body, body))
	return revert.Record{Header: v.Header, Body: body}
}

// entry is a vector as a journal would give it back.
func (v vector) entry(t *testing.T) revert.Entry {
	t.Helper()
	salt, err := hex.DecodeString(v.Salt)
	require.NoError(t, err)
	return revert.Entry{Pos: 7, Header: v.Header, Head: []byte(v.CanonicalHeader), Salt: salt, Body: []byte(v.CanonicalBody), Leaf: v.Leaf}
}

func TestRecordVectors(t *testing.T) {
	var kinds []revert.Kind
	for _, v := range vectors(t) {
		kinds = append(kinds, v.Kind)
		t.Run(string(v.Kind), func(t *testing.T) {
			want := v.entry(t)
			sealed, err := revert.Seal(v.record(t), want.Salt)
			require.NoError(t, err)
			require.Equal(t, v.CanonicalHeader, string(sealed.Head))
			require.Equal(t, v.CanonicalBody, string(sealed.Body))
			require.Equal(t, v.BodyDigest, sealed.BodyDigest())
			sealed.Pos = want.Pos
			want, err = want.Checked()
			require.NoError(t, err)
			require.Equal(t, want, sealed)

			back, err := revert.Unseal(want)
			require.NoError(t, err)
			again, err := revert.Seal(back, want.Salt)
			require.NoError(t, err)
			require.Equal(t, v.Leaf, again.Leaf, "nothing is lost on the way")
		})
	}
	require.Equal(t, revert.Kinds(), slices.Compact(kinds), "each kind has a vector, those of one kind stand together")
}

func TestDamagedRecords(t *testing.T) {
	for _, v := range vectors(t) {
		for part, damage := range map[string]func(*revert.Entry){
			"head":    func(e *revert.Entry) { e.Head[len(e.Head)/2] ^= 1 },
			"salt":    func(e *revert.Entry) { e.Salt[0] ^= 1 },
			"body":    func(e *revert.Entry) { e.Body[len(e.Body)-1] ^= 1 },
			"leaf":    func(e *revert.Entry) { e.Leaf = v.BodyDigest },
			"no body": func(e *revert.Entry) { e.Body = nil },
			"erased":  func(e *revert.Entry) { e.Body, e.Salt = nil, nil },
		} {
			t.Run(string(v.Kind)+" "+part, func(t *testing.T) {
				e := v.entry(t)
				damage(&e)
				require.ErrorIs(t, e.Check(), revert.ErrDamaged)
				_, err := revert.Unseal(e)
				require.ErrorIs(t, err, revert.ErrDamaged)
				require.ErrorContains(t, err, "entry 7")
			})
		}
	}
}

func TestAnErasedRecordIsStillChecked(t *testing.T) {
	v := vectors(t)[0]
	e := v.entry(t)
	e.Erased = e.BodyDigest()
	require.ErrorIs(t, e.Check(), revert.ErrDamaged, "it has both")
	e.Salt, e.Body = nil, nil
	require.NoError(t, e.Check())
	_, err := revert.Unseal(e)
	require.ErrorIs(t, err, revert.ErrErased)
	require.NotErrorIs(t, err, revert.ErrDamaged)
	e.Erased = v.Leaf
	require.ErrorIs(t, e.Check(), revert.ErrDamaged)
	e.Erased = v.BodyDigest
	e.Head[0] ^= 1
	require.ErrorIs(t, e.Check(), revert.ErrDamaged)
}

func TestRecordsOfANewerRemit(t *testing.T) {
	seal := func(head, body string) revert.Entry {
		salt := make([]byte, revert.SaltSize)
		digest := canon.Sum("remit/body/v1", salt, []byte(body))
		leaf := canon.Sum("remit/leaf/v1", []byte(head), []byte(digest))
		return revert.Entry{Pos: 3, Head: []byte(head), Salt: salt, Body: []byte(body), Leaf: string(leaf)}
	}
	for name, test := range map[string]struct{ head, body, says string }{
		"version": {`{"at":"2026-01-02T03:04:05Z","kind":"committed","v":2}`, `{}`, "version 2"},
		"kind":    {`{"at":"2026-01-02T03:04:05Z","kind":"promised","v":1}`, `{}`, `kind "promised"`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := revert.Unseal(seal(test.head, test.body))
			require.ErrorContains(t, err, test.says)
			require.ErrorContains(t, err, "newer")
			require.NotErrorIs(t, err, revert.ErrDamaged)
		})
	}
	_, err := revert.Unseal(seal(`{"at":"2026-01-02T03:04:05Z","kind":"savepoint","v":1}`, `{"name":5}`))
	require.ErrorIs(t, err, revert.ErrDamaged, "a known record with a body that it cannot have")
	_, err = seal(`{"at":5,"kind":"savepoint","v":1}`, `{"name":"s"}`).Checked()
	require.ErrorIs(t, err, revert.ErrDamaged, "a header that it cannot have")
	require.ErrorContains(t, err, "entry 3: header")
}

func TestSealRefuses(t *testing.T) {
	salt := make([]byte, revert.SaltSize)
	sound := revert.Record{Header: revert.Header{Kind: revert.KindSavepoint}, Body: &revert.Savepoint{Name: "a"}}
	_, err := revert.Seal(sound, salt[1:])
	require.ErrorContains(t, err, "salt of 15 bytes")
	other := sound
	other.Body = &revert.Committed{}
	_, err = revert.Seal(other, salt)
	require.ErrorContains(t, err, "does not belong")
	for name, r := range map[string]revert.Record{
		"header": {Header: revert.Header{Kind: revert.KindSavepoint, Session: "\xff"}, Body: sound.Body},
		"body":   {Header: revert.Header{Kind: revert.KindNoted}, Body: &revert.Noted{Value: json.RawMessage("{")}},
	} {
		_, err = revert.Seal(r, salt)
		require.ErrorContains(t, err, name)
	}
	none := sound
	none.Body = nil
	_, err = revert.Seal(none, salt)
	require.Error(t, err)
}

// TestRecordsAreReadByPeople: header and body are one object each way.
func TestRecordsAreReadByPeople(t *testing.T) {
	r := revert.Record{Header: revert.Header{V: 1, Kind: revert.KindSavepoint, Txn: "t_1", At: time.Unix(0, 0).UTC()}, Body: &revert.Savepoint{Name: "here"}}
	text, err := json.Marshal(r)
	require.NoError(t, err)
	require.JSONEq(t, `{"v":1,"kind":"savepoint","txn":"t_1","at":"1970-01-01T00:00:00Z","body":{"name":"here"}}`, string(text))
}

// TestEveryFieldOfEveryKindComesBack fills all fields with values of their own,
// so that none is dropped, renamed to another's name, or confused with another.
func TestEveryFieldOfEveryKindComesBack(t *testing.T) {
	for _, kind := range revert.Kinds() {
		t.Run(string(kind), func(t *testing.T) {
			body, err := revert.NewBody(kind)
			require.NoError(t, err)
			n := 0
			fill(t, reflect.ValueOf(body).Elem(), &n)
			want := revert.Record{Body: body}
			fill(t, reflect.ValueOf(&want.Header).Elem(), &n)
			want.Kind, want.V = kind, revert.RecordVersion
			e, err := revert.Seal(want, []byte("0123456789abcdef"))
			require.NoError(t, err)
			got, err := revert.Unseal(e)
			require.NoError(t, err)
			require.Equal(t, want, got)
		})
	}
}

// fill gives every field below v a value that no other has.
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
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Map:
		v.Set(reflect.ValueOf(map[string]json.Number{"sum": json.Number(fmt.Sprintf("%d.5", *n))}))
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
