package definition_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/mcp/gateway/internal/definition"
	"github.com/remit-dev/remit/provenance"
)

func parse(t *testing.T, hints, input, output string) definition.Definition {
	d, err := definition.Parse(definition.Tools, []byte(`{"name":"x","annotations":{`+hints+`},"inputSchema":{"type":"object","properties":{`+input+`}},"outputSchema":{"type":"object","properties":{`+output+`}}}`))
	require.NoError(t, err)
	return d
}

// TestDraftRoles: roles come from formats and names, and what is in doubt has
// none.
func TestDraftRoles(t *testing.T) {
	const input = `"to":{"type":"array","items":{"type":"string"}},"replyTo":{"type":"string"},"site":{"type":"string","format":"uri"},"amount":{"type":"number"},
		"messageId":{"type":"string"},"user_ids":{"type":"array","items":{"type":"string"}},"text_url":{"type":"string"},"body_email":{"type":"string","format":"email"},
		"body":{"type":"string"},"noteText":{"type":"string"},"due_date":{"type":"string","format":"date"},"date":{"type":"integer"},"title":{"type":["string","null"]},
		"content_type":{"type":"string"},"name":{"type":"string"},"page":{"type":"integer"},"pageSize":{"type":"integer"},"limit":{"type":"integer"},"spending_limit":{"type":"number"},
		"query":{"type":"string"},"*":{"type":"string","format":"email"},"a/b":{"type":"object","properties":{"comment":{"type":"string"}}},
		"parts":{"type":"array","items":{"type":"object","properties":{"text":{"type":"string"},"path":{"type":"string"}}}}`
	const authority, content, selector = provenance.Authority, provenance.Payload, provenance.Selector
	want := provenance.Roles{
		"/to/*": authority, "/replyTo": authority, "/site": authority, "/amount": authority, "/messageId": authority, "/user_ids/*": authority, "/text_url": authority,
		"/body_email": authority, "/body": content, "/noteText": content, "/due_date": content, "/title": content, "/page": selector, "/pageSize": selector,
		"/a~1b/comment": content, "/parts/*/text": content, "/parts/*/path": authority,
	}
	d := parse(t, "", input, "")
	require.Equal(t, want, d.DraftRoles())
	want["/query"], want["/limit"] = selector, selector
	d = parse(t, `"readOnlyHint":true`, input, "")
	require.Equal(t, want, d.DraftRoles(), "of a tool that reads")
	for pointer := range want {
		require.NoError(t, d.CheckPlaces([]string{pointer}, nil))
	}
	require.Nil(t, parse(t, "", `"name":{"type":"string"}`, "").DraftRoles())
}

// TestDraftTrustedFields: no text is a candidate, and nothing that names another
// person.
func TestDraftTrustedFields(t *testing.T) {
	d := parse(t, "", "", `"id":{"type":"string"},"title":{"type":"string"},"body":{"type":"string"},"total":{"type":"number"},"total_count":{"type":"integer"},
		"createdAt":{"type":"string","format":"date-time"},"updated":{"type":"string"},"start":{"type":"string","format":"date-time"},"external_id":{"type":"string"},"sender_id":{"type":"string"},
		"url":{"type":"string","format":"uri"},"count":{"type":"string"},
		"items":{"type":"array","items":{"type":"object","properties":{"uuid":{"type":"string"},"text":{"type":"string"},"author":{"type":"object","properties":{"id":{"type":"string"}}},"modified_at":{"type":"integer"}}}}`)
	want := []string{"/createdAt", "/id", "/items/*/modified_at", "/items/*/uuid", "/total_count"}
	require.Equal(t, want, d.DraftTrustedFields())
	require.NoError(t, d.CheckPlaces(nil, want))
	require.ErrorContains(t, d.CheckPlaces(nil, []string{"/ids"}), `"trustedFields": /ids: "ids" is not known, did you mean "id"?`)
}
