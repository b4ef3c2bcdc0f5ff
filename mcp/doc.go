// Package mcp serves the tools of an agent.Runtime over the Model Context
// Protocol, in its revisions 2026-07-28 and 2025-11-25 and the older ones that
// clients still speak.
//
// A Server decides nothing. A client acts in a session of the runtime, and each
// tools/call runs through agent.Txn.Invoke like any other call: the policy decides
// it, the journal records it, the runtime verifies it, and callers can revert it.
// A call that names no transaction is its own transaction. The result holds its
// ID, by which callers can revert it later.
//
// One client, over standard input and output or in memory:
//
//	srv, err := mcp.New(rt, mcp.Options{})
//	s, err := rt.Session(ctx, perm.Principal{ID: "coder"}, agent.ClientProfile(perm.ClientFacts{Surface: mcp.Surface}))
//	err = srv.Run(ctx, &sdk.StdioTransport{}, s)
package mcp
