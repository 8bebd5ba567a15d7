package conformance

import (
	"context"
	"fmt"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

func addResources(server *mcp.Server) {
	add := func(name, media, description string, contents mcp.ResourceContents) {
		uri := "test://" + name
		server.AddResource(&mcp.Resource{Name: name, Description: description, MIMEType: media, URI: uri},
			func(context.Context, *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
				contents := contents
				contents.URI, contents.MIMEType = uri, media
				return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{&contents}}, nil
			})
	}
	add("static-text", "text/plain", "A text.", mcp.ResourceContents{Text: "the text of a resource"})
	add("static-binary", "image/png", "An image.", mcp.ResourceContents{Blob: picture()})
	add("watched-resource", "text/plain", "A text to subscribe to.", mcp.ResourceContents{Text: "the text of a watched resource"})

	server.AddResourceTemplate(&mcp.ResourceTemplate{
		Name: "template", Description: "Data by id.", MIMEType: "application/json", URITemplate: "test://template/{id}/data",
	}, func(_ context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		uri := req.Params.URI
		id := strings.TrimSuffix(strings.TrimPrefix(uri, "test://template/"), "/data")
		return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{
			URI: uri, MIMEType: "application/json", Text: fmt.Sprintf(`{"id":%q,"templateTest":true,"data":"Data for ID: %s"}`, id, id),
		}}}, nil
	})
}
