package fakemodel

import (
	"encoding/json"
	"fmt"
	"strings"
)

func parseGemini(body []byte) (h incoming, err error) {
	var request struct {
		Tools    []json.RawMessage
		Contents []struct {
			Role  string
			Parts []struct {
				Text             string
				FunctionResponse *struct {
					ID       string
					Response map[string]json.RawMessage
				}
			}
		}
	}
	if err := json.Unmarshal(body, &request); err != nil {
		return incoming{}, err
	}
	h.tools = len(request.Tools) > 0
	for _, c := range request.Contents {
		if c.Role == "model" {
			continue
		}
		for _, p := range c.Parts {
			r := p.FunctionResponse
			if r == nil {
				h.parts = append(h.parts, part{text: p.Text})
				continue
			}
			value, failed := r.Response["error"]
			if !failed {
				value = r.Response["output"]
			}
			said, err := text(value)
			if err != nil {
				said = string(value)
			}
			h.parts = append(h.parts, part{text: said, callID: r.ID, failed: failed})
		}
	}
	return h, nil
}

func sayGemini(w *reply, t Turn, n int) {
	var parts []string
	if t.Text != "" {
		parts = append(parts, `{"text":`+quote(t.Text)+`}`)
	}
	for i, c := range t.Calls {
		signature := ""
		if i == 0 {
			signature = fmt.Sprintf(`,"thoughtSignature":"b3BhcXVl%d"`, n)
		}
		parts = append(parts, `{"functionCall":{"id":`+quote(c.ID)+`,"name":`+quote(c.Tool)+`,"args":`+c.Args+`}`+signature+`}`)
	}
	body := `{"candidates":[{"content":{"role":"model","parts":[` + strings.Join(parts, ",") +
		`]},"finishReason":"STOP","index":0}],"usageMetadata":{"promptTokenCount":10,"candidatesTokenCount":10,"totalTokenCount":20}}`
	if w.stream {
		w.event("", body)
		return
	}
	w.whole(body)
}
