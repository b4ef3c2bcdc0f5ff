// Package mcp serves the tools of an agent.Runtime over the Model Context Protocol, in its revisions 2026-07-28 and
// 2025-11-25 and the older ones that clients still speak.
//
// A Server decides nothing. Whoever connects acts in a session of the runtime, and each tools/call ends in the same
// agent.Txn.Invoke as any other call: asked for, on the journal, verified, and taken back when somebody says so. A call
// that names no transaction is one by itself, and can be taken back later by its id, which its result tells.
//
// One client, over standard input and output or in memory:
//
//	srv, err := mcp.New(rt, mcp.Options{})
//	s, err := rt.Session(ctx, perm.Principal{ID: "coder"}, agent.ClientProfile(perm.ClientFacts{Surface: mcp.Surface}))
//	err = srv.Run(ctx, &sdk.StdioTransport{}, s)
package mcp
