package record_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/revert/record"
)

// FuzzHeader compares the fast path of decodeHeader with the general path: it
// decodes to the same header, and accepts nothing that the general path
// rejects.
func FuzzHeader(f *testing.F) {
	plain := `{"at":"2026-01-02T03:04:05.6Z","call":"c_1","kind":"done","session":"s_1","txn":"t_1","v":1}`
	for _, s := range []string{
		plain,
		`{"at":"2026-01-02T03:04:05Z","kind":"session","session":"s","v":1}`,
		`{"at":"2026-01-02T03:04:05Z","kind":"committed","v":1}`,
		strings.Replace(plain, "Z", "+01:00", 1), strings.Replace(plain, "c_1", `c\u005f1`, 1), strings.Replace(plain, "c_1", "é", 1),
		strings.Replace(plain, "c_1", "", 1), strings.Replace(plain, "c_1", "\x7f", 1), strings.Replace(plain, `"v":1`, `"v":2`, 1),
		strings.Replace(plain, `,"kind":"done"`, "", 1), strings.Replace(plain, `"kind"`, `"kinD"`, 1), strings.Replace(plain, "03:04", "3:4", 1),
		strings.Replace(plain, ".6", ",6", 1), strings.Replace(plain, "01-02", "02-30", 1), plain + " ", plain[:len(plain)-1], plain[:12], "", "{}",
		strings.Replace(plain, `"call":"c_1",`, `"call":"c_1","call":"c_1",`, 1), strings.Replace(plain, "05.6Z", "60Z", 1),
		strings.Replace(plain, "T03", "T24", 1), strings.Replace(plain, "T03", "T3", 1), strings.Replace(plain, "T", "t", 1), strings.Replace(plain, ".6", ".", 1),
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, head []byte) {
		var want record.Header
		err := canon.Decode(head, &want)
		if got, ok := record.PlainHeader(head); ok {
			require.NoError(t, err)
			require.Equal(t, want, got)
		}
	})
}

func TestHeadersThatAreWrittenAreReadQuickly(t *testing.T) {
	for _, v := range vectors(t) {
		got, ok := record.PlainHeader([]byte(v.CanonicalHeader))
		require.True(t, ok, v.CanonicalHeader)
		require.Equal(t, v.Header, got)
	}
}

// FuzzHeaderText compares the written header with the general form, also for
// texts that cannot be written.
func FuzzHeaderText(f *testing.F) {
	f.Add("done", "s_1", "t_1", "c_1", 1, int64(1700000000), int64(600000000))
	f.Add("", "", "", "", 0, int64(0), int64(0))
	f.Add("é\"\\\n", "\x01", "\u2028", "\xff", -3, int64(-62135596801), int64(1))
	f.Add("session", "s", "", "", 1, int64(253402300800), int64(999999999))
	f.Fuzz(func(t *testing.T, kind, session, txn, call string, v int, seconds, nanos int64) {
		h := record.Header{V: v, Kind: record.Kind(kind), Session: session, Txn: txn, Call: call, At: time.Unix(seconds, nanos).UTC()}
		want, bad := canon.Marshal(h)
		got, err := record.AppendHeader([]byte("before"), h)
		require.Equal(t, bad == nil, err == nil)
		require.Equal(t, "before"+string(want), string(got))
	})
}
