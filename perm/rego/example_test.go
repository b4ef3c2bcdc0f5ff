package rego_test

import (
	"context"
	"fmt"

	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/perm/rego"
)

func ExampleNew() {
	engine, err := rego.New(rego.Options{Modules: map[string]string{"policy.rego": `package remit

allow contains "reads stay in the workspace" if {
	input.access.action == "read"
	input.access.resource.root == "workspace"
}

deny contains "never the git folder" if ".git" in input.access.resource.segments
`}})
	if err != nil {
		fmt.Println(err)
		return
	}
	r := perm.Request{Purpose: perm.PurposeRun}
	r.Access.Action = perm.Read
	r.Access.Resource = perm.ResourceFacts{
		Kind: "file", Text: "file://workspace/.git/config",
		Root: "workspace", Path: ".git/config", Segments: []string{".git", "config"},
	}
	d, err := engine.Decide(context.Background(), r)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(d.Effect(), d.Reasons()[0].Text, d.Reasons()[0].At)
	// Output: deny never the git folder policy.rego:8
}
