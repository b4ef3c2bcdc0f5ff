package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/internal/proof/pgtest"
)

// TestAgentOnASharedJournal: the resident process of coding agents works on a
// journal in PostgreSQL, and reverts what a person asks on another node. The
// agent itself can ask no other node.
func TestAgentOnASharedJournal(t *testing.T) {
	p := newAgentPlace(t)
	url, _ := pgtest.Database(t)
	p.env = append(p.env, "REMIT_JOURNAL="+url)
	require.NoError(t, os.WriteFile(p.at("s.jsonl"), []byte(`{"tool":"file_write","args":{"path":"b.txt","content":"x"}}`+"\n"), 0o600))
	require.NoError(t, os.Mkdir(p.at("one"), 0o700))
	one := []string{"--workspace", p.at("one"), "--state", p.at("one.st")}
	code, out := p.person(append([]string{"run", "--json", p.at("s.jsonl")}, one...)...)
	require.Zero(t, code, out)
	var theirs struct {
		Txn string `json:"txn"`
	}
	require.NoError(t, json.Unmarshal([]byte(out[strings.LastIndex(strings.TrimSpace(out), "\n")+1:]), &theirs), out)

	out = p.runs(
		p.event("s1", "SessionStart", nil), p.event("s1", "UserPromptSubmit", map[string]any{"prompt": "go"}), p.writes("s1", "u1", "a.txt", "one"), p.event("s1", "Stop", nil),
		"really undo "+theirs.Txn+"; echo asked:$?",
	)
	require.Contains(t, out, "asked:3")
	require.Contains(t, out, "not reverted for the agent")
	code, out = p.person("pending", "--json")
	require.Zero(t, code, out)
	require.Empty(t, out, "the agent has asked for nothing")
	require.FileExists(t, filepath.Join(p.project, "a.txt"))
	require.NotZero(t, p.daemon(), "it lives on")

	code, out = p.person("undo", "p1", "--wait", "10m", "--state", p.at("one.st"))
	require.Zero(t, code, out)
	require.Contains(t, out, "deleted   a.txt")
	require.NoFileExists(t, filepath.Join(p.project, "a.txt"))
	code, out = p.person("redo")
	require.Zero(t, code, out)
	require.FileExists(t, filepath.Join(p.project, "a.txt"))
}

// TestAgentsAfterALostJournal: the resident process opens a journal again that another process took from it, and its sessions
// go on.
func TestAgentsAfterALostJournal(t *testing.T) {
	url, _ := pgtest.Database(t)
	p := newAgentPlace(t)
	p.env = append(p.env, "REMIT_JOURNAL="+url)
	writes := p.writer()
	require.Contains(t, writes("s1", "u1"), `"permissionDecision":"allow"`)
	pgtest.Exec(t, url, "UPDATE remit.owners SET ended = now() WHERE ended IS NULL")
	require.Contains(t, writes("s1", "u2"), `"permissionDecision":"deny"`, "nothing runs without a record")
	for _, session := range []string{"s1", "s2"} {
		require.Contains(t, writes(session, "u3"+session), `"permissionDecision":"allow"`)
	}
}
