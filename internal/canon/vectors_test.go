package canon_test

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/remit-dev/remit/internal/canon"
	"github.com/stretchr/testify/require"
)

type vectors struct {
	Cases []struct {
		Name      string  `json:"name"`
		In        string  `json:"in"`
		InHex     string  `json:"in_hex"`
		Nest      int     `json:"nest"`
		Canonical *string `json:"canonical"`
		Error     string  `json:"error"`
		Pointer   string  `json:"pointer"`
	} `json:"cases"`
	Digests []struct {
		Name   string       `json:"name"`
		Domain string       `json:"domain"`
		Parts  []string     `json:"parts"`
		Digest canon.Digest `json:"digest"`
	} `json:"digests"`
	Contents []struct {
		Data   string       `json:"data"`
		Digest canon.Digest `json:"digest"`
	} `json:"contents"`
}

func load(t testing.TB) vectors {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "..", "testdata", "canon", "vectors.json"))
	require.NoError(t, err)
	var v vectors
	require.NoError(t, json.Unmarshal(data, &v))
	require.GreaterOrEqual(t, len(v.Cases), 150)
	return v
}

// document returns the input of a case: text, bytes or nesting.
func document(t testing.TB, in, inHex string, nest int) []byte {
	t.Helper()
	if nest > 0 {
		return []byte(strings.Repeat("[", nest) + strings.Repeat("]", nest))
	}
	if inHex != "" {
		data, err := hex.DecodeString(inHex)
		require.NoError(t, err)
		return data
	}
	return []byte(in)
}

func TestVectors(t *testing.T) {
	for _, c := range load(t).Cases {
		t.Run(c.Name, func(t *testing.T) {
			got, err := canon.Canonicalize(document(t, c.In, c.InHex, c.Nest), canon.DefaultLimits())
			if c.Canonical == nil {
				require.ErrorIs(t, err, canon.ErrInvalid)
				require.ErrorContains(t, err, c.Error)
				require.ErrorContains(t, err, wantPlace(c.Pointer))
				return
			}
			require.NoError(t, err)
			require.Equal(t, *c.Canonical, string(got))
			again, err := canon.Canonicalize(got, canon.DefaultLimits())
			require.NoError(t, err)
			require.Equal(t, string(got), string(again))
		})
	}
}

// wantPlace returns a pointer as a message shows it; long ones are cut.
func wantPlace(pointer string) string {
	if pointer == "" {
		return "invalid JSON at the top"
	}
	if len(pointer) > 200 {
		return "at " + strings.TrimSuffix(strconv.Quote(pointer[:200]), `"`)
	}
	return "invalid JSON at " + strconv.Quote(pointer)
}

func TestDigestVectors(t *testing.T) {
	seen := map[canon.Digest]string{}
	for _, c := range load(t).Digests {
		t.Run(c.Name, func(t *testing.T) {
			parts := make([][]byte, 0, len(c.Parts))
			for _, p := range c.Parts {
				parts = append(parts, document(t, "", p, 0))
			}
			got := canon.Sum(c.Domain, parts...)
			require.Equal(t, c.Digest, got)
			require.True(t, got.Valid())
			require.Empty(t, seen[got], "two lists with one digest")
			seen[got] = c.Name
		})
	}
}

func TestContentVectors(t *testing.T) {
	for _, c := range load(t).Contents {
		data := document(t, "", c.Data, 0)
		require.Equal(t, c.Digest, canon.SumBytes(data))

		h := canon.NewHash()
		for _, b := range data {
			_, err := h.Write([]byte{b})
			require.NoError(t, err)
		}
		require.Equal(t, c.Digest, h.Digest())
		require.EqualValues(t, len(data), h.Size())
	}
}

// TestRFC8785Sample uses the sample of RFC 8785, section 3.2.2, without its
// numbers: those follow this package's own form.
func TestRFC8785Sample(t *testing.T) {
	in := `{
	  "numbers": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],
	  "string": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/",
	  "literals": [null, true, false]
	}`
	want := `{"literals":[null,true,false],` +
		`"numbers":[333333333.33333329,1` + strings.Repeat("0", 30) + `,4.5,0.002,1e-27],` +
		`"string":"€$\u000f\nA'B\"\\\\\"/"}`
	got, err := canon.Canonicalize([]byte(in), canon.DefaultLimits())
	require.NoError(t, err)
	require.Equal(t, want, string(got))
}

// TestRFC8785Sorting uses the sorting sample of RFC 8785, section 3.2.3, which
// orders by code units.
func TestRFC8785Sorting(t *testing.T) {
	in := `{"\u20ac":"Euro Sign","\r":"Carriage Return","\ufb33":"Hebrew Letter Dalet With Dagesh","1":"One",` +
		`"\ud83d\ude00":"Emoji: Grinning Face","\u0080":"Control","\u00f6":"Latin Small Letter O With Diaeresis"}`
	v, err := canon.Parse([]byte(in), canon.DefaultLimits())
	require.NoError(t, err)
	var order []string
	for _, member := range v.Members() {
		order = append(order, member.Text())
	}
	require.Equal(t, []string{
		"Carriage Return", "One", "Control", "Latin Small Letter O With Diaeresis", "Euro Sign",
		"Emoji: Grinning Face", "Hebrew Letter Dalet With Dagesh",
	}, order)
}

func TestDigestValid(t *testing.T) {
	good := string(canon.SumBytes(nil))
	require.True(t, canon.Digest(good).Valid())
	for name, d := range map[string]string{
		"empty": "", "no prefix": good[len("sha256:"):], "capital": strings.ToUpper(good[:8]) + good[8:], "short": good[:len(good)-1],
		"long": good + "0", "other": "sha512:" + good[len("sha256:"):], "upper hex": "sha256:" + strings.ToUpper(good[len("sha256:"):]), "space": good[:len(good)-1] + " ",
	} {
		require.False(t, canon.Digest(d).Valid(), name)
	}
}

func TestLimits(t *testing.T) {
	for name, c := range map[string]struct {
		in     string
		limits canon.Limits
		err    string
	}{
		"fits exactly":               {`[1]`, canon.Limits{Bytes: 3, Depth: 1}, ""},
		"one byte over":              {`[10]`, canon.Limits{Bytes: 3, Depth: 1}, "larger than the limit of 3 bytes"},
		"one level over":             {`[[1]]`, canon.Limits{Bytes: 99, Depth: 1}, `at "/0" (byte 1): nested deeper than the limit of 1`},
		"scalar needs no depth":      {`1`, canon.Limits{Bytes: 1}, ""},
		"zero limits":                {`1`, canon.Limits{}, "larger than the limit of 0 bytes"},
		"negative limits":            {``, canon.Limits{Bytes: -1, Depth: -1}, "larger than the limit"},
		"siblings are not depth":     {`[[],[],{}]`, canon.Limits{Bytes: 99, Depth: 2}, ""},
		"numbers that would grow":    {`[1e39,1e39]`, canon.Limits{Bytes: 50, Depth: 1}, "once its numbers are written out"},
		"numbers that grow and fit":  {`[1e39,1e39]`, canon.Limits{Bytes: 83, Depth: 1}, ""},
		"depth beyond all reason":    {strings.Repeat("[", 100_000), canon.Limits{Bytes: 1 << 20, Depth: 1 << 40}, "nested deeper than the limit of 10000"},
		"ten thousand levels can be": {strings.Repeat("[", 10_000) + strings.Repeat("]", 10_000), canon.Limits{Bytes: 1 << 20, Depth: 1 << 40}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := canon.Canonicalize([]byte(c.in), c.limits)
			if c.err != "" {
				require.ErrorContains(t, err, c.err)
				require.ErrorIs(t, err, canon.ErrInvalid)
				return
			}
			require.NoError(t, err)
			require.LessOrEqual(t, len(got), c.limits.Bytes)
		})
	}
}

// TestErrorsAreShortAndSilent checks that each message is short and repeats no
// value of the document.
func TestErrorsAreShortAndSilent(t *testing.T) {
	long := strings.Repeat("n", 1<<16)
	for _, in := range []string{
		`{"` + long + `":[01]}`,
		strings.Repeat(`{"`+long[:1000]+`":`, 100) + "x",
		`{"a":"secret` + long + `\x"}`,
		`{"a":12345678901234567890123456789012345678901234567890}`,
		`{"a":secret}`,
	} {
		_, err := canon.Parse([]byte(in), canon.DefaultLimits())
		require.Error(t, err)
		require.Less(t, len(err.Error()), 800)
		require.NotContains(t, err.Error(), "secret")
		require.NotContains(t, err.Error(), "1234567")
		require.True(t, errors.Is(err, canon.ErrInvalid))
	}
}
