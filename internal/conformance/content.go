package conformance

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// picture is the smallest PNG: one red pixel.
func picture() []byte {
	pixel := image.NewRGBA(image.Rect(0, 0, 1, 1))
	pixel.Set(0, 0, color.RGBA{R: 255, A: 255})
	var out bytes.Buffer
	if err := png.Encode(&out, pixel); err != nil {
		return nil // the suite fails on an empty image
	}
	return out.Bytes()
}

// sound is a WAV file of one silent sample.
func sound() []byte {
	const header = "RIFF\x26\x00\x00\x00WAVEfmt \x10\x00\x00\x00\x01\x00\x01\x00\x40\x1f\x00\x00\x80\x3e\x00\x00\x02\x00\x10\x00data\x02\x00\x00\x00"
	return binary.LittleEndian.AppendUint16([]byte(header), 0)
}

func embedded(uri string) *mcp.EmbeddedResource {
	return &mcp.EmbeddedResource{Resource: &mcp.ResourceContents{URI: uri, MIMEType: "text/plain", Text: "an embedded text"}}
}

func addContentTools(server *mcp.Server) {
	results := []struct {
		name, description string
		content           []mcp.Content
	}{
		{"test_simple_text", "Answers with one text.", []mcp.Content{&mcp.TextContent{Text: "a simple text"}}},
		{"test_image_content", "Answers with one image.", []mcp.Content{&mcp.ImageContent{Data: picture(), MIMEType: "image/png"}}},
		{"test_audio_content", "Answers with one sound.", []mcp.Content{&mcp.AudioContent{Data: sound(), MIMEType: "audio/wav"}}},
		{"test_embedded_resource", "Answers with one embedded resource.", []mcp.Content{embedded("test://embedded-resource")}},
		{"test_multiple_content_types", "Answers with a text, an image and a resource.", []mcp.Content{
			&mcp.TextContent{Text: "a text among others"},
			&mcp.ImageContent{Data: picture(), MIMEType: "image/png"},
			embedded("test://embedded-among-others"),
		}},
	}
	for _, r := range results {
		addTool(server, r.name, r.description, func(context.Context, *mcp.CallToolRequest, noArguments) (*mcp.CallToolResult, error) {
			return &mcp.CallToolResult{Content: r.content}, nil
		})
	}
	addTool(server, "test_error_handling", "Always fails.", func(context.Context, *mcp.CallToolRequest, noArguments) (*mcp.CallToolResult, error) {
		return nil, errors.New("this tool fails on purpose")
	})
	addTool(server, "test_tool_with_progress", "Reports progress: 0, 50 and 100 of 100.", progress)
	addTool(server, "test_tool_with_logging", "Logs three lines.", func(ctx context.Context, req *mcp.CallToolRequest, _ noArguments) (*mcp.CallToolResult, error) {
		for _, line := range []string{"begun", "working", "done"} {
			if err := log(ctx, req, line); err != nil {
				return nil, err
			}
			time.Sleep(20 * time.Millisecond) // the suite wants to see them apart
		}
		return text("logged three lines"), nil
	})
}

func log(ctx context.Context, req *mcp.CallToolRequest, line string) error {
	return req.Session.Log(ctx, &mcp.LoggingMessageParams{Level: "info", Data: line})
}

func progress(ctx context.Context, req *mcp.CallToolRequest, _ noArguments) (*mcp.CallToolResult, error) {
	token := req.Params.GetProgressToken()
	for _, percent := range []float64{0, 50, 100} {
		err := req.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{
			ProgressToken: token, Progress: percent, Total: 100, Message: fmt.Sprintf("%.0f of 100", percent),
		})
		if err != nil {
			return nil, err
		}
		time.Sleep(20 * time.Millisecond) // the suite wants to see them apart
	}
	return text(fmt.Sprint(token)), nil
}
