package wiretest

import (
	"bytes"
	"context"
	"encoding/json"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/bedrockruntime"
	"github.com/aws/aws-sdk-go-v2/service/bedrockruntime/document"
	"github.com/aws/aws-sdk-go-v2/service/bedrockruntime/types"
	smithy "github.com/aws/smithy-go/document"
	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/tool/wire"
)

func bedrock() sdk {
	return sdk{
		format: wire.Bedrock, history: "messages",
		choices: choices(func(c wire.ToolChoice) bool { return !c.Single && c.Mode != wire.None }),
		respond: func(calls []called) (json.RawMessage, []json.RawMessage) {
			content := []any{
				object{"reasoningContent": object{"reasoningText": object{"text": "hm", "signature": "c2ln"}}}, object{"text": "I will."},
			}
			for _, c := range calls {
				content = append(content, object{"toolUse": object{"toolUseId": c.id, "name": c.name, "input": c.args}})
			}
			message := marshal(object{"role": "assistant", "content": content})
			return marshal(object{
				"output": object{"message": message}, "stopReason": "tool_use",
				"usage": object{"inputTokens": 1, "outputTokens": 1, "totalTokens": 2}, "metrics": object{"latencyMs": 1},
			}), []json.RawMessage{message}
		},
		converse: func(t *testing.T, url string, fields map[string]json.RawMessage, answer answer) (seen []called) {
			client := bedrockruntime.New(bedrockruntime.Options{
				Region: "us-east-1", BaseEndpoint: aws.String(url), RetryMaxAttempts: 1,
				Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
					return aws.Credentials{AccessKeyID: "none", SecretAccessKey: "none"}, nil
				}),
			})
			input := &bedrockruntime.ConverseInput{ModelId: aws.String("m"), ToolConfig: toolConfig(t, fields["toolConfig"])}
			input.Messages = []types.Message{{Role: types.ConversationRoleUser, Content: []types.ContentBlock{&types.ContentBlockMemberText{Value: "Do it."}}}}
			response, err := client.Converse(t.Context(), input)
			require.NoError(t, err)
			output, is := response.Output.(*types.ConverseOutputMemberMessage)
			require.True(t, is)
			for _, block := range output.Value.Content {
				if use, is := block.(*types.ContentBlockMemberToolUse); is {
					seen = append(seen, called{*use.Value.ToolUseId, *use.Value.Name, written(t, use.Value.Input)})
				}
			}
			input.Messages = append(input.Messages, output.Value)
			turn := marshal(object{"output": object{"message": spoken(t, output.Value)}, "stopReason": response.StopReason})
			for _, result := range answer(turn) {
				input.Messages = append(input.Messages, resultMessage(t, result))
			}
			_, err = client.Converse(t.Context(), input)
			require.NoError(t, err)
			return seen
		},
	}
}

// The types of this SDK know no JSON: it is taken apart and put together here, as its users have to. What a type has no place for
// is an error.

func strictly(t *testing.T, raw json.RawMessage, target any) {
	t.Helper()
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	dec.UseNumber()
	require.NoError(t, dec.Decode(target), "%s", raw)
}

func toolConfig(t *testing.T, raw json.RawMessage) *types.ToolConfiguration {
	t.Helper()
	var config struct {
		Tools []struct {
			Spec struct {
				Name, Description *string
				InputSchema       struct{ JSON any }
				Strict            *bool
			} `json:"toolSpec"`
		}
		ToolChoice *struct {
			Auto, Any *struct{}
			Tool      *struct{ Name *string }
		}
	}
	strictly(t, raw, &config)
	out := &types.ToolConfiguration{}
	for _, d := range config.Tools {
		out.Tools = append(out.Tools, &types.ToolMemberToolSpec{Value: types.ToolSpecification{
			Name: d.Spec.Name, Description: d.Spec.Description, Strict: d.Spec.Strict,
			InputSchema: &types.ToolInputSchemaMemberJson{Value: document.NewLazyDocument(numbers(d.Spec.InputSchema.JSON))},
		}})
	}
	switch c := config.ToolChoice; {
	case c == nil:
	case c.Auto != nil:
		out.ToolChoice = &types.ToolChoiceMemberAuto{}
	case c.Any != nil:
		out.ToolChoice = &types.ToolChoiceMemberAny{}
	default:
		out.ToolChoice = &types.ToolChoiceMemberTool{Value: types.SpecificToolChoice{Name: c.Tool.Name}}
	}
	return out
}

func resultMessage(t *testing.T, raw json.RawMessage) types.Message {
	t.Helper()
	type source struct{ Bytes []byte }
	var message struct {
		Role    types.ConversationRole
		Content []struct {
			Result struct {
				ID      *string `json:"toolUseId"`
				Status  types.ToolResultStatus
				Content []struct {
					Text  *string
					JSON  any
					Image *struct {
						Format types.ImageFormat
						Source source
					}
					Document *struct {
						Format types.DocumentFormat
						Name   *string
						Source source
					}
				}
			} `json:"toolResult"`
		}
	}
	strictly(t, raw, &message)
	out := types.Message{Role: message.Role}
	for _, block := range message.Content {
		result := types.ToolResultBlock{ToolUseId: block.Result.ID, Status: block.Result.Status}
		if result.Status != "" {
			require.Contains(t, result.Status.Values(), result.Status)
		}
		for _, c := range block.Result.Content {
			switch {
			case c.Text != nil:
				result.Content = append(result.Content, &types.ToolResultContentBlockMemberText{Value: *c.Text})
			case c.JSON != nil:
				result.Content = append(result.Content, &types.ToolResultContentBlockMemberJson{Value: document.NewLazyDocument(numbers(c.JSON))})
			case c.Image != nil:
				require.Contains(t, c.Image.Format.Values(), c.Image.Format)
				result.Content = append(result.Content, &types.ToolResultContentBlockMemberImage{Value: types.ImageBlock{
					Format: c.Image.Format, Source: &types.ImageSourceMemberBytes{Value: c.Image.Source.Bytes},
				}})
			default:
				require.Contains(t, c.Document.Format.Values(), c.Document.Format)
				result.Content = append(result.Content, &types.ToolResultContentBlockMemberDocument{Value: types.DocumentBlock{
					Format: c.Document.Format, Name: c.Document.Name, Source: &types.DocumentSourceMemberBytes{Value: c.Document.Source.Bytes},
				}})
			}
		}
		out.Content = append(out.Content, &types.ContentBlockMemberToolResult{Value: result})
	}
	return out
}

// spoken is a turn of the SDK's types as JSON.
func spoken(t *testing.T, m types.Message) object {
	t.Helper()
	var content []any
	for _, block := range m.Content {
		switch b := block.(type) {
		case *types.ContentBlockMemberText:
			content = append(content, object{"text": b.Value})
		case *types.ContentBlockMemberToolUse:
			content = append(content, object{"toolUse": object{
				"toolUseId": b.Value.ToolUseId, "name": b.Value.Name, "input": written(t, b.Value.Input),
			}})
		}
	}
	return object{"role": m.Role, "content": content}
}

func written(t *testing.T, d document.Interface) json.RawMessage {
	t.Helper()
	raw, err := d.MarshalSmithyDocument()
	require.NoError(t, err)
	return raw
}

// numbers are what the SDK's documents take for numbers.
func numbers(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for name := range v {
			v[name] = numbers(v[name])
		}
	case []any:
		for i := range v {
			v[i] = numbers(v[i])
		}
	case json.Number:
		return smithy.Number(v)
	}
	return v
}
