// A followed citation in; the same page of the site that is being read out. Citations lead to the
// site's public address: on a preview or on localhost, the reader stays there.

import siteConfig from '@generated/docusaurus.config';
import globalData from '@generated/globalData';
import {showCopyButton} from './copy';

function stayHere(event) {
  const published = new URL(siteConfig.url).origin;
  const target = new URL(event.detail.link || event.detail.url, published);
  if (target.origin !== published || published === window.location.origin) return;
  event.preventDefault();
  // A plain navigation: a client-side one would not lead on to the quoted words.
  window.location.assign(target.href.slice(published.length));
}

if (typeof document !== 'undefined') document.addEventListener('bythebook:open', stayHere);

const words = Object.values(globalData['docusaurus-plugin-bythebook'] ?? {}).find((data) => data?.markdown)?.markdown;

/** On each page that is opened, the button that copies it as Markdown, if that is configured. */
export function onRouteDidUpdate({location, previousLocation}) {
  if (words && location.pathname !== previousLocation?.pathname) showCopyButton(words, location.pathname);
}
