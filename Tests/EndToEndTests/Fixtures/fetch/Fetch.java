import java.net.HttpURLConnection;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse.BodyHandlers;

/** GETs a URL with HttpClient or HttpURLConnection and prints the answer. Both take a proxy from https.proxyHost and https.proxyPort. */
public class Fetch {
    public static void main(String[] words) throws Exception {
        URI url = URI.create(words[1]);
        if (words[0].equals("HttpClient")) {
            HttpRequest request = HttpRequest.newBuilder(url).build();
            System.out.println(HttpClient.newHttpClient().send(request, BodyHandlers.ofString()).body());
        } else {
            HttpURLConnection connection = (HttpURLConnection) url.toURL().openConnection();
            System.out.println(new String(connection.getInputStream().readAllBytes()));
        }
    }
}
