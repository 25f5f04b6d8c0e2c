import React from 'react';

const LABELS = {
  key: 'Key idea',
  example: 'Example',
  history: 'Background',
  lab: 'In the lab',
};

/**
 * A coloured box for one idea. `tone` is key, example, history or lab.
 */
export default function Callout({tone = 'key', children}) {
  return (
    <aside className={`callout callout--${tone}`}>
      <strong className="callout__label">{LABELS[tone] ?? LABELS.key}</strong>
      <div className="callout__body">{children}</div>
    </aside>
  );
}
