package origin_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/internal/origin"
)

// words returns the words of all sentences.
func words(text string) (all []string) {
	for _, sentence := range origin.Sentences(text) {
		all = append(all, sentence...)
	}
	return all
}

func TestWords(t *testing.T) {
	for text, want := range map[string][]string{
		"":                                     nil,
		"  \n\t ":                              nil,
		"Send it to Anna's team, please!":      {"send", "it", "to", "anna", "team", "please"},
		"<Bob@Corp.Example>;carl@corp.example": {"bob@corp.example", "carl@corp.example"},
		"mailto:Bob@Corp.Example":              {"bob@corp.example"},
		"HTTPS://Example.com:443/a/../b, and":  {"https://example.com/b", "and"},
		"1,250.50 1.250,50 €1250.5 1250.50%":   {"#1250.5", "#1250.5", "#1250.5", "#1250.5"},
		"1,000 1000 1.0 1":                     {"#1000", "#1000", "#1", "#1"},
		"12,5 1,000,000 1.000.000 -5 -$5":      {"#12.5", "#1000000", "#1000000", "#-5", "#-5"},
		"007 00123 0.50 0":                     {"007", "00123", "#0.5", "#0"},
		"5.000 100.000 1,234":                  {"5.000", "100.000", "#1234"},
		"0,250 0.250 1,250":                    {"#0.25", "#0.25", "#1250"},
		"1,00,0 1.2.3 ab12X":                   {"#1", "00", "#0", "1.2.3", "ab12X"},
		"src/Main.go #general @anna key=Value": {"src/Main.go", "general", "anna", "key", "value"},
		"README.md":                            {"README.md"},
		"Größe ÉTÉ":                            {"größe", "été"},
	} {
		require.Equal(t, want, words(text), text)
	}
}

func TestSentences(t *testing.T) {
	for text, want := range map[string][][]string{
		"Ask Bob. Smith is ill!":       {{"ask", "bob"}, {"smith", "is", "ill"}},
		"At no. 5 of St. Paul":         {{"at", "no", "#5", "of", "st", "paul"}},
		"Read a.txt, b.txt; then stop": {{"read", "a.txt", "b.txt"}, {"then", "stop"}},
		"It says (yes.) Go":            {{"it", "says", "yes"}, {"go"}},
	} {
		require.Equal(t, want, origin.Sentences(text), text)
	}
}

func TestAccounts(t *testing.T) {
	for text, want := range map[string][]string{
		"to DE89 3704 0044 0532 0130 00 today": {"DE89370400440532013000"},
		"call +49 170 1234567.":                {"+491701234567"},
		"card 4111 1111 1111 1111, please":     {"4111111111111111"},
		"card 4111 1111 1111 1112":             nil, // a wrong check digit
		"to DE89 3704 0044 0532 0130 02":       nil,
		"order 12345 500 EUR":                  nil,
		"no. 1234. 5678 people came":           nil,
		"4111-1111-1111-1111":                  nil, // one word, which is the account itself
		"in 2026 at 10":                        nil,
		"no digits here":                       nil,
	} {
		require.Equal(t, want, origin.Joined(text), text)
	}
	for text, want := range map[string]string{
		"4111-1111 1111-1111":         "4111111111111111",
		"de89 3704 0044 0532 0130 00": "DE89370400440532013000",
		"NO93 8601 1117 947":          "NO9386011117947",
		"+49 170-1234567":             "+491701234567",
	} {
		account, is := origin.Account(text)
		require.True(t, is, text)
		require.Equal(t, want, account)
	}
	for _, text := range []string{"12345", "abcdefgh", "ab@c.de12345", "1234 5678 x! 9", "4111.1111.1111.1111", "4111-1111 1111-1112", "DE88 3704 0044 0532 0130 00", "+0 170 1234567", "00491701234567"} {
		_, is := origin.Account(text)
		require.False(t, is, text)
	}
}

func TestIdentifiers(t *testing.T) {
	for text, want := range map[string][]string{
		"to eve@evil.example's box":             {"eve@evil.example"},
		"to eve@evil.example—now":               {"eve@evil.example"},
		"→Eve@Evil.example":                     {"eve@evil.example"},
		"eve＠evil.example":                      {"eve@evil.example"},
		"eve@evil.exämple":                      {"eve@evil.exämple"},
		"eve@\u200bevil.example":                {"eve@evil.example"},
		"eve@1.2.3.4.":                          {"eve@1.2.3.4"},
		"from o'brien@evil.example":             {"o'brien@evil.example"},
		"'eve!@evil.example'":                   {"eve!@evil.example"},
		"a@b@evil.example":                      {"b@evil.example"},
		"eve@evil, 3 @ 4.5":                     nil,
		"pay DE89 3704 0044 0532 0130 00 now":   {"DE89370400440532013000"},
		"DE89:3704:0044:0532:0130:00":           {"DE89370400440532013000"},
		"DE89_3704_0044_0532_0130_00":           {"DE89370400440532013000"},
		"DE89‑3704‑0044‑0532‑0130‑00":           {"DE89370400440532013000"},
		"DE89\u200b370400440532013000":          {"DE89370400440532013000"},
		"call +49 170 1234567!":                 {"+491701234567"},
		"account 1234567890":                    {"1234567890"},
		"account １２３４５６７８９０":                    {"1234567890"},
		"1,250.50 EUR on 2026-11-29 at 10:30":   nil,
		"nothing that names anything elsewhere": nil,
	} {
		got := []string{}
		for _, id := range origin.Identifiers(text) {
			if id.Kind != "url" {
				got = append(got, id.Text)
			}
		}
		require.ElementsMatch(t, want, got, "%q", text)
	}
}

func newIndex() *origin.Index {
	return origin.New(func(token string) (d origin.Digest) {
		copy(d[:], canon.SumBytes([]byte(token))[7:])
		return d
	})
}

func say(x *origin.Index, text string) {
	digests := func(tokens []string) (all []origin.Digest) {
		for _, token := range tokens {
			var d origin.Digest
			copy(d[:], canon.SumBytes([]byte(token))[7:])
			all = append(all, d)
		}
		return all
	}
	for _, sentence := range origin.Sentences(text) {
		x.Said(digests(sentence), nil)
	}
	x.Said(nil, digests(origin.Joined(text)))
}

// TestNothingIsMissedOfUntrustedContent: each word of untrusted content, and each run of words, is found again.
func TestNothingIsMissedOfUntrustedContent(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	x := newIndex()
	var words []string
	for range 30_000 {
		words = append(words, fmt.Sprintf("%c%x", 'a'+rune(rnd.IntN(26)), rnd.Uint64()>>uint(rnd.IntN(60))))
	}
	for i := 0; i < len(words); i += 100 {
		x.Seen([]byte(strings.Join(words[i:i+100], " ")), rnd.IntN(2) == 0)
	}
	for i := 0; i+5 < len(words); i++ {
		if i%100 <= 95 {
			require.NotZero(t, x.Look(strings.Join(words[i:i+1+rnd.IntN(4)], " "), false)&origin.Untrusted, words[i])
		}
	}
}

// TestFilter measures how often a value is taken for one that was seen.
func TestFilter(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	for _, n := range []int{100, 10_000, 300_000} {
		x := newIndex()
		for i := range n {
			x.Seen(fmt.Appendf(nil, "seen%d", i), false)
		}
		wrong := 0
		for range 20_000 {
			if x.Look(fmt.Sprintf("other%x", rnd.Uint64()), false)&origin.Untrusted != 0 {
				wrong++
			}
		}
		require.Less(t, wrong, 200, "%d words", n)
		t.Logf("%d words: %d of 20000", n, wrong)
	}
}

// TestFullFilter: beyond its bound everything counts as seen, and nothing is trusted by that.
func TestFullFilter(t *testing.T) {
	x := newIndex()
	x.Narrow()
	for i := range 20_000 {
		if x.Look("never-seen-by-anybody", false)&origin.Untrusted != 0 {
			return
		}
		x.Seen(fmt.Appendf(nil, "%x", i*7919), false)
	}
	require.Fail(t, "the filter has no bound")
}

func TestPaths(t *testing.T) {
	p := origin.PathsOf(map[string]string{"": "all", "/a": "a", "/a/*/b": "star", "/a/0/b": "exact", "/x~1y": "escaped"})
	for pointer, want := range map[string]string{"": "all", "/z/1": "all", "/a": "a", "/a/1": "a", "/a/1/b": "star", "/a/1/b/c": "star", "/a/0/b": "exact", "/x~1y": "escaped", "/ab": "all"} {
		got, ok := p.Find(pointer)
		require.True(t, ok)
		require.Equal(t, want, got, pointer)
	}
	for range 20 { // in any order of the map
		got, _ := origin.PathsOf(map[string]string{"/a/*": "mild", "/*/b": "strict"}, "strict", "mild").Find("/a/b")
		require.Equal(t, "strict", got)
	}
	_, ok := origin.PathsOf(map[string]string{"/a": "a"}).Find("/b")
	require.False(t, ok)
}

// TestBounds: what is beyond the bounds has no origin, and what a call wrote beyond them ends the trust in results.
func TestBounds(t *testing.T) {
	x := newIndex()
	say(x, strings.Repeat("word ", origin.MostSaid))
	say(x, "later")
	require.Zero(t, x.Look("later", false))

	y := newIndex()
	y.Begun("c1", false, nil, true)
	y.Returned("c1", []string{"m_4711x"})
	require.Equal(t, origin.Trusted, y.Look("m_4711x", false))
	for i := range 10_000 {
		y.Begun("w", true, []string{fmt.Sprintf("value %d of many", i)}, true)
	}
	y.Begun("c2", false, nil, true)
	y.Returned("c2", []string{"m_9999z"})
	require.Zero(t, y.Look("m_9999z", false)&origin.Trusted)
	require.NotZero(t, y.Look("m_4711x", false)&origin.Trusted, "what was trusted stays")
}

// TestForget: what only an erased call returned is not trusted any more.
func TestForget(t *testing.T) {
	x := newIndex()
	for _, call := range []string{"c1", "c2"} {
		x.Begun(call, false, nil, true)
		x.Returned(call, []string{"both_4711", "only_" + call})
	}
	x.Forget("c1")
	require.Zero(t, x.Look("only_c1", false))
	require.Equal(t, origin.Trusted, x.Look("both_4711", false))
	require.Equal(t, origin.Trusted, x.Look("only_c2", false))
	x.Forget("c2")
	require.Zero(t, x.Look("both_4711", false))
}

func BenchmarkSeen(b *testing.B) {
	rnd := rand.New(rand.NewPCG(1, 1))
	var text strings.Builder
	for text.Len() < 1_000_000 {
		fmt.Fprintf(&text, "word%x ", int(rnd.ExpFloat64()*2000))
		if rnd.IntN(40) == 0 {
			fmt.Fprintf(&text, "user%d@host%d.example\\n", rnd.IntN(1e5), rnd.IntN(1e3))
		}
	}
	page := []byte(text.String())
	x := newIndex()
	b.SetBytes(int64(len(page)))
	for b.Loop() {
		x.Seen(page, true)
	}
}

// TestNumbersOfUntrustedContent: a number is found however the content writes it.
func TestNumbersOfUntrustedContent(t *testing.T) {
	for value, texts := range map[string][]string{
		"186.4":  {"186.4", "186.40", "EUR 186,40!", "(186.4)"},
		"1864":   {"1864", "1,864", "1.864,00", "1,864.00", "1'864", "1 864.00", "EUR1864", "1864kr", "$1,864", "EUR1,864.00", "1,864€", "€1.864", "1,864kr", "–1864–"},
		"1250.5": {"1,250.50", "1.250,5", "1250.50"},
	} {
		for _, text := range texts {
			x := newIndex()
			x.Seen([]byte("Please pay "+text+" today"), true)
			require.NotZero(t, x.Look(value, false)&origin.Untrusted, "%s in %s", value, text)
		}
		x := newIndex()
		x.Seen([]byte("Please pay 18.64 or 1251 today"), true)
		require.Zero(t, x.Look(value, false)&origin.Untrusted)
	}
}
