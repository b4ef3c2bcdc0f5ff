package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/mcp/gateway/config"
)

// TestReferenceGateway holds the tables of members in gateway-config.md. The
// parser accepts the members that config.Objects lists, and no others.
func TestReferenceGateway(t *testing.T) {
	for _, object := range config.Objects() {
		text := header("member", "type", "default", "meaning")
		for _, m := range object.Members {
			require.NotEmpty(t, m.Type, "%s: %s", object.Name, m.Name)
			require.NotEmpty(t, m.Meaning, "%s: %s", object.Name, m.Name)
			text += row(code(m.Name), m.Type, cell(m.Default), cell(m.Meaning))
		}
		holdPart(t, "gateway-config.md", object.Name, text)
	}
}
