package record_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/record"
)

// typical returns the two records of a call that writes a small file.
func typical() (started, done record.Record) {
	input := json.RawMessage(`{"content":"a line of text, and one more\n","path":"notes/today.md","root":"workspace"}`)
	access := []record.Access{{Action: "write", Resource: "file://workspace/notes/today.md"}}
	header := record.Header{Session: "s_7k2m4p6r8t0w", Txn: "t_4n8q2v6y0b3d", Call: "c_1x5z9c3f7h2k", At: time.Date(2026, 1, 2, 3, 4, 5, 678901234, time.UTC)}
	started = record.Record{Header: header, Body: &record.Started{
		Sequence: 3, Key: string(canon.Sum("key")), Tool: record.ToolRef{Name: "file_write", Version: "1", Digest: string(canon.Sum("tool"))},
		Input: input, InputDigest: string(canon.SumBytes(input)), Class: effect.Reversible, Declared: true, Confinement: "handles",
		Access: access, Right: access, Decision: json.RawMessage(`{"outcome":"allow","reasons":["writes to the workspace are allowed"]}`),
	}}
	started.Kind = record.KindStarted
	output := json.RawMessage(`{"bytes":29,"created":true,"path":"notes/today.md"}`)
	done = record.Record{Header: header, Body: &record.Done{Output: output, OutputDigest: string(canon.SumBytes(output))}}
	done.Kind = record.KindDone
	return started, done
}

func BenchmarkSeal(b *testing.B) {
	started, done := typical()
	salt := []byte("0123456789abcdef")
	for _, r := range []record.Record{started, done} {
		b.Run(string(r.Kind), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_, err := record.Seal(r, salt)
				require.NoError(b, err)
			}
		})
	}
}

func BenchmarkCheck(b *testing.B) {
	started, done := typical()
	for _, r := range []record.Record{started, done} {
		e, err := record.Seal(r, []byte("0123456789abcdef"))
		require.NoError(b, err)
		b.Run(string(r.Kind), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				require.NoError(b, e.Check())
			}
		})
	}
}
