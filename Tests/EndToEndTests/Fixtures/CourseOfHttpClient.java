// Walks the course with java.net.http: java CourseOfHttpClient.java URL. Each step prints one line.
// The client is made as everybody makes it: it offers HTTP/2 on every request where no proxy is set.
import java.io.ByteArrayInputStream;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublisher;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse.BodyHandlers;

class CourseOfHttpClient {
    static final HttpClient client = HttpClient.newHttpClient();
    static String base;

    static void ask(String step, String method, String path, BodyPublisher body, boolean counts) throws Exception {
        var request = HttpRequest.newBuilder(URI.create(base + path)).method(method, body).build();
        var response = client.send(request, BodyHandlers.ofByteArray());
        var bytes = response.body();
        System.out.println(step + " " + response.statusCode() + " " + (counts ? bytes.length : new String(bytes)));
    }

    public static void main(String[] arguments) throws Exception {
        base = arguments[0];
        var nothing = BodyPublishers.noBody();
        ask("get", "GET", "/items?x=1", nothing, false);
        ask("post", "POST", "/count", BodyPublishers.ofString("hello=world"), false);
        ask("chunked", "POST", "/count",
            BodyPublishers.ofInputStream(() -> new ByteArrayInputStream(new byte[200000])), false);
        ask("big", "GET", "/big", nothing, true);
        ask("head", "HEAD", "/items?x=1", nothing, false);
        ask("delete", "DELETE", "/items?x=1", nothing, false);
    }
}
